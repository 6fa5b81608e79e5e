//! Lets a test look at a ring between any two stores to it, as a kill would find it. Costs nothing outside of tests.

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

    /// From now on this thread calls `look` after each of its stores; returns what was called before.
    pub(crate) fn set(look: Option<Look>) -> Option<Look> {
        LOOK.with(|hook| std::mem::replace(&mut *hook.borrow_mut(), look))
    }

    pub(super) fn run() {
        // Taken out meanwhile, so that what the look itself stores is not looked at.
        if let Some(mut look) = set(None) {
            look();
            set(Some(look));
        }
    }
}
