//! Many processes at one node: how long until each knows all, and what they cost while idle.
//!
//! ```text
//! cargo run --release --example scale -- 200
//! ```

use std::{env, path::PathBuf, process::Command, time::Duration};

#[path = "../tests/support/scale.rs"]
mod scale;

use scale::{Part, measure, take_part};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments: Vec<String> = env::args().skip(1).collect();
    let number = |at: usize| arguments.get(at).and_then(|text| text.parse().ok());
    let directory = PathBuf::from(env::var_os("TAMPU_RUN_DIR").unwrap_or_else(|| {
        let name = format!("tampu-scale-{}", std::process::id());
        env::temp_dir().join(name).into_os_string()
    }));
    match (arguments.first().map(String::as_str), number(1), number(2)) {
        (Some("node"), ..) => take_part(Part::Node, &directory)?,
        (Some("member"), Some(number), Some(of)) => take_part(Part::Member { number, of }, &directory)?,
        _ => {
            let program = env::current_exe()?;
            let measured = measure(&directory, number(0).unwrap_or(200), Duration::from_secs(10), |part| {
                let mut command = Command::new(&program);
                match part {
                    Part::Node => command.arg("node"),
                    Part::Member { number, of } => command.args(["member", &number.to_string(), &of.to_string()]),
                };
                command.env("TAMPU_RUN_DIR", &directory);
                command
            })?;
            println!("{measured:#?}");
            std::fs::remove_dir_all(&directory)?;
        }
    }
    Ok(())
}
