//! Processes that live shortly beside a node and another process: what the two keep of them.
//!
//! ```text
//! cargo run --release --example lives -- killed 20000
//! cargo run --release --example lives -- orderly 20000
//! ```

use std::{env, path::Path, process::Command};

#[path = "../tests/support/lives.rs"]
mod lives;

use lives::{Failure, Part, measure, take_part};

fn main() -> Result<(), Failure> {
    let arguments: Vec<String> = env::args().skip(1).collect();
    let [first, second] = &arguments[..] else { return Err("lives killed|orderly NUMBER".into()) };
    if let Some(part) = Part::of(first) {
        return take_part(part, Path::new(second));
    }
    let directory = env::temp_dir().join(format!("tampu-lives-{}", std::process::id()));
    std::fs::create_dir_all(&directory)?;
    let program = env::current_exe()?;
    let start = |part: Part| {
        let mut command = Command::new(&program);
        command.arg(part.word()).arg(&directory);
        command
    };
    measure(&directory, (second.parse()?, 10), first == "killed", start, |after| {
        println!("{after:?}");
        true
    })?;
    std::fs::remove_dir_all(&directory)?;
    Ok(())
}
