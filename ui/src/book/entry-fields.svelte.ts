/** The attributes of an entry that is being written: their values, and the fields that the logbook's configuration makes of them. */
import * as api from "./api";

/** Fields whose values are chosen among options. */
const CHOICES = ["options", "multiple", "radio"];
const LISTS = ["multiple", "userlists", "tags"];

const same = (one: string, other: string): boolean => one.toLowerCase() === other.toLowerCase();

/** The form that the fields belong to. */
export interface FieldsOf {
  book: () => string;
  /** The logbook's attributes. */
  attributes: () => readonly api.AttributeDef[];
  purpose: () => api.Purpose;
  failed: (problem: unknown) => void;
}

export class EntryFields {
  values = $state<Record<string, string[]>>({});
  /** The fields under the present values, once the hub has said them. */
  made = $state.raw<api.Form>();
  /** Refusals by the attribute's name in lower case. */
  refused = $state<Record<string, string>>({});
  /** Counts questions for fields: the answer of an earlier one is of no use. */
  private asked = 0;

  constructor(private readonly of: FieldsOf) {}

  /** Until the hub has said more, the attributes as the logbook has them. */
  readonly all = $derived.by((): api.FormField[] => {
    const isEdit = this.of.purpose().edits !== undefined;
    return this.made?.fields ?? this.of.attributes().map((one) => ({ ...one, shown: true, fixed: Boolean(one.computed) || Boolean(one.locked && isEdit), decides: false }));
  });

  readonly shown = $derived.by(() => this.all.filter((one) => one.shown && !(one.computed && this.of.purpose().edits === undefined)));

  /** The values that belong to the entry. Those for another logbook stay in the form, in case somebody goes back to it. */
  written(): api.EntryAttribute[] {
    const isOfBook = (name: string): boolean => this.of.purpose().edits !== undefined || this.all.length === 0 || this.all.some((one) => same(one.name, name));
    return Object.entries($state.snapshot(this.values)).filter(([name, list]) => list.length > 0 && isOfBook(name)).map(([name, list]) => ({ name, values: list }));
  }

  fill(attributes: readonly api.EntryAttribute[]): void {
    this.values = Object.fromEntries(attributes.map(({ name, values }) => [name, values]));
  }

  /** Fills in values where there are none. */
  complete(attributes: readonly api.EntryAttribute[]): void {
    for (const { name, values } of attributes) {
      if (!this.values[name]?.length) {
        this.values[name] = values;
      }
    }
  }

  /** Begins another question for fields. The function that it returns tells whether it is still the last one. */
  question(): () => boolean {
    const mine = ++this.asked;
    return () => mine === this.asked;
  }

  /** Asks for the fields under the values. */
  async adapt(): Promise<void> {
    const isLast = this.question();
    try {
      const now = await api.form(this.of.book(), this.of.purpose(), this.written());
      if (isLast()) {
        this.adopt(now);
      }
    } catch (problem) {
      this.of.failed(problem);
    }
  }

  /** Takes over other fields; a value that another condition or logbook does not have is taken back. */
  adopt(now: api.Form | undefined): void {
    const before = this.made;
    this.made = now;
    for (const { name, kind, options = [], extendable, shown: isShown } of now?.fields ?? []) {
      const was = before?.fields.find((one) => one.name === name);
      const isOther = was !== undefined && (was.kind !== kind || JSON.stringify(was.options ?? []) !== JSON.stringify(options));
      if (isShown && isOther && !extendable && CHOICES.includes(kind)) {
        this.values[name] = (this.values[name] ?? []).filter((value) => options.includes(value)).slice(0, kind === "multiple" ? undefined : 1);
      }
    }
  }

  change(field: api.FormField, list: string[]): void {
    this.values[field.name] = list;
    delete this.refused[field.name.toLowerCase()];
    if (field.decides) {
      void this.adapt();
    }
  }

  /** The first field that lacks a value. */
  get missing(): api.FormField | undefined {
    return this.shown.find(({ name, required, kind, fixed }) => required && !fixed && kind !== "boolean" && !this.values[name]?.some((value) => value !== ""));
  }

  /** Names a refusal at its field. Returns false for a field that is not in the form. */
  refuse(name: string, reason: string): boolean {
    const isShown = this.shown.some((one) => same(one.name, name));
    if (isShown) {
      this.refused[name.toLowerCase()] = reason;
    }
    return isShown;
  }

  takesSeveral(name: string): boolean {
    return this.all.some((one) => same(one.name, name) && (one.several || LISTS.includes(one.kind)));
  }
}
