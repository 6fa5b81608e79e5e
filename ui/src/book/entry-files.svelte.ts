/** The files of an entry that is being written: those it has, and new ones on their way to the hub. */
import * as api from "./api";
import { why } from "./format";
import { BOOK_TEXT } from "./text";

export interface SentFile {
  name: string;
  size: number;
  sha?: string | null;
  fault?: string;
  /** The address of its bytes in this page. */
  url?: string;
  file?: File;
}

export class EntryFiles {
  list = $state<SentFile[]>([]);
  /** Files that the hub does not have: an entry without them would not be the one that somebody wrote. */
  readonly unsent = $derived(this.list.filter(({ sha }) => !sha));

  /** `failed` gets the reason why a file was not sent. */
  constructor(private readonly failed: (problem: unknown) => void) {}

  /** The files that the hub has, as an entry or a draft names them. */
  get named(): { name: string; sha: string | null }[] {
    return this.list.filter(({ sha }) => sha).map(({ name, sha }) => ({ name, sha: sha ?? null }));
  }

  /** Takes over the files of an entry. Those of this page keep their pictures. */
  take(attachments: readonly api.Attachment[]): void {
    const urls = new Map(this.list.map(({ sha, url }) => [sha, url]));
    this.list = attachments.map((file) => ({ ...file, ...(urls.get(file.sha) ? { url: urls.get(file.sha) as string } : {}) }));
  }

  /** Adds files and sends them. `picture` gets the name of each picture before it is sent. */
  async add(list: Iterable<File>, isPasted: boolean, picture: (name: string) => void): Promise<void> {
    const fresh: [SentFile, File][] = [];
    for (const file of list) {
      const name = isPasted && /^image\.\w+$/.test(file.name) ? `picture-${Date.now()}-${this.list.length}.${file.name.split(".")[1]}` : file.name;
      const isPicture = file.type.startsWith("image/");
      this.list.push({ name, size: file.size, file, ...(isPicture ? { url: URL.createObjectURL(file) } : {}) });
      fresh.push([this.list.at(-1) as SentFile, file]);
      if (isPicture) {
        picture(name);
      }
    }
    for (const [to, file] of fresh) {
      await this.send(to, file);
    }
  }

  async send(to: SentFile, file: File): Promise<void> {
    try {
      to.sha = (await api.upload(file)).sha;
      delete to.fault;
    } catch (problem) {
      this.failed(problem);
      to.fault = why(problem);
    }
  }

  /** Sends once more what the end of a session has kept back. */
  async sendAgain(): Promise<void> {
    await Promise.all(this.list.map((file) => (file.fault && file.file ? this.send(file, file.file) : undefined)));
  }

  /** Files that the hub no longer has, as after its restart: what this page has is sent again. */
  lose(names: readonly string[]): void {
    for (const file of this.list.filter(({ name, sha }) => sha && names.includes(name))) {
      file.sha = null;
      if (file.file) {
        void this.send(file, file.file);
      } else {
        file.fault = BOOK_TEXT.lostFile;
      }
    }
  }

  /** Puts the files of a draft behind those of its entry; what the hub no longer has is named. */
  resume(own: readonly api.Attachment[], missing: readonly string[]): void {
    const lost = missing.map((name) => ({ name, size: 0, fault: BOOK_TEXT.lostFile }));
    this.list = [...own.map((file) => ({ ...file })), ...this.list.filter(({ sha }) => !own.some((known) => known.sha === sha)), ...lost];
  }

  /** Gives up the pictures of this page. */
  release(): void {
    this.list.forEach(({ url }) => url && URL.revokeObjectURL(url));
  }
}
