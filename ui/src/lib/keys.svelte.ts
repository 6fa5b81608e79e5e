/** The keys of the view in sight, for the page of help. */
export type Keys = readonly (readonly [keys: string, effect: string])[];

class ViewKeys {
  list = $state.raw<Keys>();

  /** Shows these keys until the view goes; for an effect of the view. */
  show(keys: Keys): () => void {
    this.list = keys;
    return () => {
      this.list = undefined;
    };
  }
}

export const viewKeys = new ViewKeys();
