//! Passwords from standard input or the terminal.

use std::io::{self, BufRead, IsTerminal};

use crate::{failure::Failure, terminal::Silent};

/// Reads lines of standard input; on a terminal each with its question, and without showing it.
fn read_secretly<const N: usize>(questions: [&str; N]) -> Result<[String; N], Failure> {
    let line = || -> Result<String, Failure> {
        let mut line = String::new();
        io::stdin().lock().read_line(&mut line).map_err(|error| Failure::failed("standard input", error))?;
        Ok(line.trim_end_matches(['\r', '\n']).to_owned())
    };
    let silent = io::stdin().is_terminal().then(Silent::begin).transpose();
    let silent = silent.map_err(|error| Failure::failed("the terminal", error))?;
    let mut answers = [const { String::new() }; N];
    for (answer, question) in answers.iter_mut().zip(questions) {
        if silent.is_some() {
            eprint!("{question}: ");
        }
        *answer = line()?;
        if silent.is_some() {
            eprintln!();
        }
    }
    Ok(answers)
}

/// A new password: a line of standard input, or asked for twice without showing it.
pub(super) fn read_password() -> Result<String, Failure> {
    if !io::stdin().is_terminal() {
        return read_secretly(["Password"]).map(|[password]| password);
    }
    let [password, again] = read_secretly(["Password", "Once more"])?;
    if password == again { Ok(password) } else { Err(Failure::Usage("the two passwords differ".to_owned())) }
}

/// The password of the person whose token is used.
pub(super) fn own_password() -> Result<String, Failure> {
    read_secretly(["Your own password"]).map(|[password]| password)
}

/// The password of a user who signs.
pub fn password(login: &str) -> Result<String, Failure> {
    let question = format!("Password of {}", login.escape_debug());
    read_secretly([&question]).map(|[password]| password)
}
