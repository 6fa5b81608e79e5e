//! Changes of the terminal: single keys without a line end, and restoring the settings at every kind of end.
//!
//! `tail` needs single keys and nothing else: signals and the output stay unchanged, so Ctrl-C works and lines end as
//! lines. This module sets termios itself for that. The viewer uses the whole screen and leaves that to its library.

use std::{
    io::{self, IsTerminal},
    sync::atomic::{AtomicBool, Ordering},
};

use parking_lot::{Mutex, MutexGuard};
use rustix::termios::{LocalModes, OptionalActions, SpecialCodeIndex, Termios, tcgetattr, tcgetpgrp, tcsetattr};

/// Settings of the terminal before a change.
static BEFORE: Mutex<Option<Termios>> = Mutex::new(None);

fn before() -> MutexGuard<'static, Option<Termios>> {
    BEFORE.lock()
}

/// True while the viewer has the whole screen.
static WHOLE_SCREEN: AtomicBool = AtomicBool::new(false);

/// Notes that the viewer's library is about to take the whole screen.
pub fn whole_screen_is_taken() {
    WHOLE_SCREEN.store(true, Ordering::Relaxed);
}

/// Restores the terminal; does nothing if nothing was changed. It also serves exits that run no destructor.
pub fn restore() {
    if WHOLE_SCREEN.swap(false, Ordering::Relaxed) {
        ratatui::restore();
    }
    if let Some(termios) = before().take() {
        // A closed terminal needs no restored settings.
        let _ = tcsetattr(io::stdin(), OptionalActions::Now, &termios);
    }
}

/// Single keys from standard input, until it is dropped.
pub struct Keys(());

impl Keys {
    /// Listens, if a person sits there: standard input and error are a terminal, and this process is in its foreground.
    pub fn listen() -> Option<Keys> {
        let stdin = io::stdin();
        let elsewhere = tcgetpgrp(&stdin).is_ok_and(|group| group != rustix::process::getpgrp());
        if !stdin.is_terminal() || !io::stderr().is_terminal() || elsewhere {
            return None;
        }
        let was = tcgetattr(&stdin).ok()?;
        let mut keys = was.clone();
        keys.local_modes.remove(LocalModes::ICANON | LocalModes::ECHO);
        // A read returns at once with the available keys.
        keys.special_codes[SpecialCodeIndex::VMIN] = 0;
        keys.special_codes[SpecialCodeIndex::VTIME] = 0;
        *before() = Some(was);
        if tcsetattr(&stdin, OptionalActions::Now, &keys).is_err() {
            before().take();
            return None;
        }
        Some(Keys(()))
    }

    /// The next key that was pressed, without waiting.
    pub fn pressed(&self) -> Option<u8> {
        let mut key = [0];
        rustix::io::read(io::stdin(), &mut key).is_ok_and(|read| read == 1).then_some(key[0])
    }
}

impl Drop for Keys {
    fn drop(&mut self) {
        restore();
    }
}

/// Input without echo while the value lives, for passwords.
pub struct Silent(());

impl Silent {
    /// Begins to be silent.
    pub fn begin() -> io::Result<Silent> {
        let stdin = io::stdin();
        let was = tcgetattr(&stdin)?;
        let mut silent = was.clone();
        silent.local_modes.remove(LocalModes::ECHO);
        *before() = Some(was);
        if let Err(error) = tcsetattr(&stdin, OptionalActions::Flush, &silent) {
            before().take();
            return Err(error.into());
        }
        Ok(Silent(()))
    }
}

impl Drop for Silent {
    fn drop(&mut self) {
        restore();
    }
}
