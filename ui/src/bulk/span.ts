/** A duration of the API, seconds or none, for people. */
export function durationOf(seconds: number | null): string {
  if (seconds === null) {
    return "";
  }
  if (seconds < 1) {
    return `${(seconds * 1000).toPrecision(3)} ms`;
  }
  const [hours, minutes, rest] = [Math.floor(seconds / 3600), Math.floor(seconds / 60) % 60, seconds % 60];
  return hours > 0 ? `${hours}h${minutes}m` : minutes > 0 ? `${minutes}m${Math.floor(rest)}s` : `${rest.toPrecision(3)} s`;
}
