//! The name of the person at the command line.

/// The author that was given, else the user that this process runs as.
pub fn author(given: Option<&str>) -> String {
    let given = given.filter(|name| !name.is_empty()).map(str::to_owned);
    given.or_else(tampu_workers::host::user_name).unwrap_or_else(|| "unknown".to_owned())
}
