/** The theme that the page has by now. The preference changes before the colours of the page do. */
class ShownTheme {
  name = $state(document.documentElement.dataset.theme ?? "");

  constructor() {
    const root = document.documentElement;
    new MutationObserver(() => (this.name = root.dataset.theme ?? "")).observe(root, { attributes: true, attributeFilter: ["data-theme"] });
  }
}

export const shownTheme = new ShownTheme();
