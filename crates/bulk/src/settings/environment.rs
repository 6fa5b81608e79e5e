//! Settings of flows in a process's environment.

use std::fmt::Display;

use tampu_types::units::parse_size;

use super::table::{Direction, FlowPatch, Protocol, Slow};

/// The variables, each with the sides of a flow that read it.
pub const VARIABLES: [(&str, &[Direction]); 10] = [
    ("TAMPU_BULK_LISTEN", &[Direction::Recv]),
    ("TAMPU_BULK_CHECKSUM", &[Direction::Send, Direction::Recv]),
    ("TAMPU_BULK_PROTOCOL", &[Direction::Send, Direction::Recv]),
    ("TAMPU_BULK_PROTECTION", &[Direction::Send, Direction::Recv]),
    ("TAMPU_BULK_RECEIVERS", &[Direction::Send]),
    ("TAMPU_BULK_THROTTLE", &[Direction::Send]),
    ("TAMPU_BULK_SLOW", &[Direction::Send]),
    ("TAMPU_BULK_MULTICAST", &[Direction::Send]),
    ("TAMPU_BULK_INTERFACE", &[Direction::Send]),
    ("TAMPU_BULK_TTL", &[Direction::Send]),
];

/// An invalid variable.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{variable}: invalid value '{value}': {why}")]
pub struct BadVariable {
    /// The variable's name.
    pub variable: &'static str,
    /// The value that it has.
    pub value: String,
    /// The reason, or the possible values.
    pub why: String,
}

/// Reads the settings of one side into empty settings of a flow. An empty variable counts as unset.
pub(super) fn read(
    empty: FlowPatch,
    direction: Direction,
    variable: &dyn Fn(&str) -> Option<String>,
) -> Result<FlowPatch, BadVariable> {
    let mut found = empty;
    for (name, sides) in VARIABLES {
        let Some(value) = variable(name).filter(|value| !value.is_empty()) else { continue };
        if sides.contains(&direction) {
            set(&mut found, name, &value).map_err(|why| BadVariable { variable: name, value, why })?;
        }
    }
    Ok(found)
}

fn set(found: &mut FlowPatch, name: &str, value: &str) -> Result<(), String> {
    match name {
        "TAMPU_BULK_LISTEN" => {
            found.endpoint = Some(value.parse().map_err(|_| "give an IP address and a port, such as 0.0.0.0:4711".to_owned())?);
        }
        "TAMPU_BULK_CHECKSUM" => found.checksum = Some(one_of(value, [("on", true), ("off", false)])?),
        "TAMPU_BULK_PROTOCOL" => {
            let all = [
                ("auto", Protocol::Auto),
                ("tcp", Protocol::Tcp),
                ("shm", Protocol::Shm),
                ("udp", Protocol::Udp),
                ("multicast", Protocol::Multicast),
            ];
            found.protocol = Some(one_of(value, all)?);
        }
        "TAMPU_BULK_PROTECTION" => {
            found.protection = Some(one_of(value, crate::Protection::ALL.map(|one| (one.name(), one)))?);
        }
        "TAMPU_BULK_RECEIVERS" => found.receivers = Some(value.parse().map_err(|error| text(&error))?),
        "TAMPU_BULK_THROTTLE" => found.throttle_mb = Some(parse_size(value).map_err(|error| text(&error))? as f64 / 1e6),
        "TAMPU_BULK_SLOW" => found.slow = Some(one_of(value, [("cut", Slow::Cut), ("skip", Slow::Skip)])?),
        "TAMPU_BULK_MULTICAST" => found.multicast = Some(value.parse().map_err(|error| text(&error))?),
        "TAMPU_BULK_INTERFACE" => found.interface = Some(value.parse().map_err(|error| text(&error))?),
        "TAMPU_BULK_TTL" => found.ttl = Some(value.parse().map_err(|_| "give 0 to 255".to_owned())?),
        _ => {}
    }
    Ok(())
}

fn text(error: &dyn Display) -> String {
    error.to_string()
}

fn one_of<T: Copy, const N: usize>(value: &str, all: [(&str, T); N]) -> Result<T, String> {
    let found = all.iter().find(|(name, _)| *name == value).map(|(_, one)| *one);
    found.ok_or_else(|| format!("give one of {}", all.map(|(name, _)| name).join(", ")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Name, Protection};

    fn empty() -> FlowPatch {
        FlowPatch::new(Name::new("s").unwrap(), Name::new("data").unwrap())
    }

    fn of(direction: Direction, set: &[(&str, &str)]) -> Result<FlowPatch, String> {
        let variable = |name: &str| set.iter().find(|(known, _)| *known == name).map(|(_, value)| (*value).to_owned());
        read(empty(), direction, &variable).map_err(|error| error.to_string())
    }

    const ALL: [(&str, &str); 10] = [
        ("TAMPU_BULK_LISTEN", "127.0.0.1:5"),
        ("TAMPU_BULK_CHECKSUM", "off"),
        ("TAMPU_BULK_PROTOCOL", "multicast"),
        ("TAMPU_BULK_PROTECTION", "encrypted"),
        ("TAMPU_BULK_RECEIVERS", "3"),
        ("TAMPU_BULK_THROTTLE", "50MB"),
        ("TAMPU_BULK_SLOW", "cut"),
        ("TAMPU_BULK_MULTICAST", "239.255.7.1:4711"),
        ("TAMPU_BULK_INTERFACE", "eth0"),
        ("TAMPU_BULK_TTL", "2"),
    ];

    #[test]
    fn each_side_reads_its_variables() {
        let sent = FlowPatch {
            checksum: Some(false),
            protocol: Some(Protocol::Multicast),
            protection: Some(Protection::Encrypted),
            receivers: Some(3),
            throttle_mb: Some(50.0),
            slow: Some(Slow::Cut),
            multicast: Some("239.255.7.1:4711".parse().unwrap()),
            interface: Some("eth0".parse().unwrap()),
            ttl: Some(2),
            ..empty()
        };
        assert_eq!(of(Direction::Send, &ALL), Ok(sent));
        let taken = FlowPatch {
            endpoint: Some("127.0.0.1:5".parse().unwrap()),
            checksum: Some(false),
            protocol: Some(Protocol::Multicast),
            protection: Some(Protection::Encrypted),
            ..empty()
        };
        assert_eq!(of(Direction::Recv, &ALL), Ok(taken));
        assert_eq!(of(Direction::Send, &ALL.map(|(name, _)| (name, ""))), Ok(empty()));
    }

    #[test]
    fn an_odd_value_is_named_with_its_variable() {
        for (name, sides) in VARIABLES {
            let why = of(sides[0], &[(name, "?!")]).unwrap_err();
            assert!(why.starts_with(&format!("{name}: invalid value '?!': ")), "{why}");
        }
        let why = of(Direction::Send, &[("TAMPU_BULK_PROTOCOL", "TCP")]).unwrap_err();
        assert!(why.ends_with("give one of auto, tcp, shm, udp, multicast"), "{why}");
    }
}
