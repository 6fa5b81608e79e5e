//! A real terminal for a command: a pseudo terminal whose other end is this test, and what stands on its screen.

use std::{
    fs::File,
    io::{Read, Write},
    process::{Child, Command, Stdio},
    sync::mpsc::{Receiver, channel},
    time::{Duration, Instant},
};

use rustix::{
    pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt},
    termios::{Winsize, tcsetwinsize},
};

use crate::site::{PATIENCE, Site};

pub struct Terminal {
    child: Child,
    keys: File,
    output: Receiver<Vec<u8>>,
    screen: vt100::Parser,
}

impl Terminal {
    /// Runs a command of this site on a terminal of this size.
    pub fn run(site: &Site, size: (u16, u16), arguments: &[&str]) -> Terminal {
        Terminal::with(site, size, arguments, &[])
    }

    /// Runs a command with more variables in its environment.
    pub fn with(site: &Site, (rows, columns): (u16, u16), arguments: &[&str], environment: &[(&str, &str)]) -> Terminal {
        let master = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
        grantpt(&master).unwrap();
        unlockpt(&master).unwrap();
        tcsetwinsize(&master, Winsize { ws_row: rows, ws_col: columns, ws_xpixel: 0, ws_ypixel: 0 }).unwrap();
        let path = ptsname(&master, Vec::new()).unwrap().into_string().unwrap();
        let slave = || {
            let file = File::options().read(true).write(true).open(&path).unwrap();
            Stdio::from(file)
        };
        // The process has a session of its own, so that this is its only terminal.
        let plain = site.command(arguments);
        let mut command = Command::new("setsid");
        command.arg("--ctty").arg(plain.get_program()).args(plain.get_args()).env_clear();
        command.envs(plain.get_envs().filter_map(|(name, value)| Some((name, value?))));
        command.env("TERM", "xterm-256color").env("PATH", std::env::var_os("PATH").unwrap_or_default());
        command.envs(environment.iter().copied());
        command.current_dir(plain.get_current_dir().unwrap());
        let child = command.stdin(slave()).stdout(slave()).stderr(slave()).spawn().expect("setsid of util-linux");
        let keys = File::from(master);
        let mut reading = keys.try_clone().unwrap();
        let (tell, output) = channel();
        std::thread::spawn(move || {
            let mut buffer = [0; 4096];
            while let Ok(count) = reading.read(&mut buffer) {
                if count == 0 || tell.send(buffer[..count].to_vec()).is_err() {
                    return;
                }
            }
        });
        Terminal { child, keys, output, screen: vt100::Parser::new(rows, columns, 1000) }
    }

    /// Types these keys.
    pub fn press(&mut self, keys: &str) {
        self.keys.write_all(keys.as_bytes()).unwrap();
    }

    /// Returns the text of the screen.
    pub fn text(&self) -> String {
        self.screen.screen().contents()
    }

    /// Waits until the screen is like this, and returns what is on it.
    #[track_caller]
    pub fn until(&mut self, what: &str, is: impl Fn(&str) -> bool) -> String {
        let end = Instant::now() + PATIENCE;
        loop {
            let text = self.text();
            if is(&text) {
                return text;
            }
            assert!(Instant::now() < end, "{what}:\n{text}");
            if let Ok(bytes) = self.output.recv_timeout(Duration::from_millis(50)) {
                self.screen.process(&bytes);
            }
        }
    }

    /// Waits until this stands on the screen.
    #[track_caller]
    pub fn until_shows(&mut self, wanted: &str) -> String {
        self.until(wanted, |text| text.contains(wanted))
    }

    /// Waits until the command has ended, and returns its exit code.
    pub fn end(&mut self) -> Option<i32> {
        // A writer on an unread terminal does not end.
        let end = Instant::now() + PATIENCE;
        loop {
            if let Some(status) = self.child.try_wait().unwrap() {
                return status.code();
            }
            assert!(Instant::now() < end, "it does not end:\n{}", self.text());
            if let Ok(bytes) = self.output.recv_timeout(Duration::from_millis(20)) {
                self.screen.process(&bytes);
            }
        }
    }

    /// Returns true if the screen's cell at the begin of this text has a colour.
    pub fn is_coloured(&self, wanted: &str) -> bool {
        let screen = self.screen.screen();
        let (rows, columns) = screen.size();
        (0..rows).any(|row| {
            let shown = |column| screen.cell(row, column).map(vt100::Cell::contents).filter(|text| !text.is_empty());
            let line: String = (0..columns).map(|column| shown(column).unwrap_or(" ")).collect();
            let Some(at) = line.find(wanted) else { return false };
            let column = line[..at].chars().count() as u16;
            screen.cell(row, column).is_some_and(|cell| cell.fgcolor() != vt100::Color::Default)
        })
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
