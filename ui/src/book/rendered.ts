/** Shows a text that the hub has rendered. The browser removes again what could run. */

type Safe = HTMLElement & { setHTML?: (html: string, options: { sanitizer: object }) => void };

/** For a browser that neither cleans HTML nor may take it as it is, the source of the text stands in its place. */
export function rendered(html: string | null | undefined, source: string): (node: HTMLElement) => void {
  return (node) => {
    const to = node as Safe;
    if (html && to.setHTML) {
      // Everything that is safe, pictures included.
      to.setHTML(html, { sanitizer: {} });
    } else if (html && !("trustedTypes" in window)) {
      to.innerHTML = html;
    } else {
      const text = document.createElement("pre");
      text.textContent = source;
      to.replaceChildren(text);
    }
  };
}
