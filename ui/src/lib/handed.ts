/** Files that one view hands to the editor of entries, which takes them when it opens. */
let handed: File[] = [];

export function handOver(files: File[]): void {
  handed = files;
}

export function takeHanded(): File[] {
  const files = handed;
  handed = [];
  return files;
}
