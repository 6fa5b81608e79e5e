//! A hook for tests that reads a ring between any two stores, in the state that a kill would leave. Costs nothing
//! outside of tests.

/// Called after every store to shared memory.
#[inline(always)]
pub(crate) fn stored() {
    #[cfg(test)]
    hook::run();
}

#[cfg(test)]
pub(crate) mod hook {
    use std::cell::RefCell;

    type Look = Box<dyn FnMut()>;

    thread_local! {
        static LOOK: RefCell<Option<Look>> = const { RefCell::new(None) };
    }

    /// Makes this thread call `look` after each of its stores; returns the previous hook.
    pub(crate) fn set(look: Option<Look>) -> Option<Look> {
        LOOK.with(|hook| std::mem::replace(&mut *hook.borrow_mut(), look))
    }

    pub(super) fn run() {
        // Removed meanwhile, so that stores of the hook itself do not call the hook.
        if let Some(mut look) = set(None) {
            look();
            set(Some(look));
        }
    }
}
