//! Keys and patterns in the engine's form.

use zenoh::key_expr::KeyExpr;

use super::settings::NAME;
use crate::engine::EngineError;

/// Reads a key or a pattern.
pub(super) fn pattern(text: &str) -> Result<KeyExpr<'static>, EngineError> {
    KeyExpr::autocanonize(text.to_owned()).map_err(|why| EngineError::Refused {
        engine: NAME,
        doing: format!("reading the key '{text}'"),
        why: why.to_string(),
    })
}
