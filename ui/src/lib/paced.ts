/** Questions that are asked again and again, at a pace that leaves the hub its time. */

/** Share of the time in which the hub works for such a question. */
const SHARE = 0.1;

/**
 * Asks until `ask` gives false, or until the returned function is called: at least `everyMs` after each answer, and longer
 * after one that took long.
 */
export function paced(ask: () => Promise<boolean>, everyMs: number, now = () => performance.now()): () => void {
  let timer: ReturnType<typeof setTimeout> | undefined;
  let isOver = false;
  async function turn(): Promise<void> {
    const begun = now();
    if ((await ask()) && !isOver) {
      timer = setTimeout(() => void turn(), Math.max(everyMs, (now() - begun) / SHARE));
    }
  }
  void turn();
  return () => {
    isOver = true;
    clearTimeout(timer);
  };
}
