//! The address of a receiver and the token that admits a sender: `host:port/token`.

use std::{fmt, str::FromStr};

use serde::{Deserialize, Serialize};

use crate::message::Token;

/// A receiver's address and token.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Target {
    /// The address `host:port`.
    pub address: String,
    /// The token that it requires.
    pub token: Token,
}

/// Error for an invalid target.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("invalid target '{0}': write host:port/ and 32 hexadecimal digits")]
pub struct BadTarget(pub String);

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/", self.address)?;
        self.token.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl FromStr for Target {
    type Err = BadTarget;

    fn from_str(text: &str) -> Result<Target, BadTarget> {
        let bad = || BadTarget(text.chars().take(80).collect());
        let (address, digits) = text.rsplit_once('/').ok_or_else(bad)?;
        let (host, port) = address.rsplit_once(':').ok_or_else(bad)?;
        if host.is_empty() || port.parse::<u16>().is_err() || digits.len() != 32 || !digits.is_ascii() {
            return Err(bad());
        }
        let mut token = Token::default();
        for (index, byte) in token.0.iter_mut().enumerate() {
            *byte = u8::from_str_radix(&digits[2 * index..2 * index + 2], 16).map_err(|_| bad())?;
        }
        Ok(Target { address: address.to_owned(), token })
    }
}

impl TryFrom<String> for Target {
    type Error = BadTarget;

    fn try_from(text: String) -> Result<Target, BadTarget> {
        text.parse()
    }
}

impl From<Target> for String {
    fn from(target: Target) -> String {
        target.to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn targets_lead_back_and_others_are_refused() {
        let target = Target { address: "[::1]:4711".to_owned(), token: Token([0xab; 16]) };
        assert_eq!(target.to_string().parse(), Ok(target));
        let zeros = "0".repeat(32);
        for bad in ["", "host:1", &format!("host/{zeros}"), &format!(":1/{zeros}"), &format!("host:x/{zeros}"), "host:1/xyz"] {
            assert!(bad.parse::<Target>().is_err(), "{bad}");
        }
        assert!(format!("h:1/{}", "é".repeat(16)).parse::<Target>().is_err());
    }
}
