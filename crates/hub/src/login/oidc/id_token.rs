//! ID tokens of OpenID Connect: signed JSON (RFC 7515), and the checks of their claims.
//!
//! ```text
//! BASE64URL(header) "." BASE64URL(claims) "." BASE64URL(signature)
//! ```
//!
//! Decision: `ring` verifies, and this file reads the three parts. The crates for this bring a second library of
//! cryptography beside `ring`, or RSA without protection against timing. Only algorithms with public keys are known here,
//! so no token is verified with a secret or without a key.

use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD};
use ring::signature::{self, RsaPublicKeyComponents, UnparsedPublicKey};
use serde::Deserialize;
use serde_json::{Map, Value};

/// Longest token, in bytes.
pub const MAX_TOKEN: usize = 64 << 10;
/// Difference of clocks that is tolerated, in seconds.
pub const SKEW: i64 = 60;

/// The claims of a token.
pub type Claims = Map<String, Value>;

/// A reason to reject a token.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum BadToken {
    /// The token is no signed JSON.
    #[error("the token is malformed: {0}")]
    Malformed(&'static str),
    /// The signature's algorithm is unknown, or none.
    #[error("the token's algorithm '{0}' is not accepted")]
    Algorithm(String),
    /// No key of the provider fits.
    #[error("the provider has no key for the token")]
    NoKey,
    /// The signature is wrong.
    #[error("the token's signature is wrong")]
    Signature,
    /// A claim is missing or wrong.
    #[error("the token's claim '{0}' is missing or wrong")]
    Claim(&'static str),
}

/// A public key of a provider (RFC 7517).
#[derive(Debug, Clone, PartialEq, Eq, Default, Deserialize)]
#[serde(default)]
pub struct Key {
    pub kty: String,
    /// The key's name.
    pub kid: Option<String>,
    /// The use of the key: `sig` or `enc`.
    #[serde(rename = "use")]
    pub usage: Option<String>,
    /// The only algorithm of the key, if it names one.
    pub alg: Option<String>,
    pub crv: String,
    pub n: String,
    pub e: String,
    pub x: String,
    pub y: String,
}

#[derive(Deserialize)]
struct Header {
    alg: String,
    #[serde(default)]
    kid: Option<String>,
    #[serde(default)]
    crit: Option<Value>,
}

/// The values that a token must have.
pub struct Expected<'a> {
    pub issuer: &'a str,
    pub client_id: &'a str,
    pub nonce: &'a str,
    /// The time of the check, in seconds since 1970.
    pub now: i64,
}

/// Verifies a token with a provider's keys, and checks its claims.
pub fn verify(token: &str, keys: &[Key], expected: &Expected<'_>) -> Result<Claims, BadToken> {
    if token.len() > MAX_TOKEN {
        return Err(BadToken::Malformed("it is too long"));
    }
    let (signed, signature) = token.rsplit_once('.').ok_or(BadToken::Malformed("it has no signature"))?;
    let (header, claims) = signed.split_once('.').ok_or(BadToken::Malformed("it has no claims"))?;
    let decoded = |part: &str| URL_SAFE_NO_PAD.decode(part).map_err(|_| BadToken::Malformed("invalid base64"));
    let header: Header = serde_json::from_slice(&decoded(header)?).map_err(|_| BadToken::Malformed("invalid header"))?;
    if header.crit.is_some() {
        return Err(BadToken::Malformed("it has critical extensions"));
    }
    let signature = decoded(signature)?;
    let kind = match header.alg.as_str() {
        "RS256" | "RS384" | "RS512" | "PS256" => "RSA",
        "ES256" | "ES384" => "EC",
        other => return Err(BadToken::Algorithm(other.chars().take(16).collect())),
    };
    let fits = |key: &&Key| {
        key.kty == kind
            && key.usage.as_deref().is_none_or(|usage| usage == "sig")
            && key.alg.as_deref().is_none_or(|alg| alg == header.alg)
            && (header.kid.is_none() || key.kid == header.kid)
    };
    let mut fitting = keys.iter().filter(fits).peekable();
    if fitting.peek().is_none() {
        return Err(BadToken::NoKey);
    }
    if !fitting.any(|key| is_signed(&header.alg, key, signed.as_bytes(), &signature)) {
        return Err(BadToken::Signature);
    }
    let claims: Claims = serde_json::from_slice(&decoded(claims)?).map_err(|_| BadToken::Malformed("invalid claims"))?;
    check(&claims, expected)?;
    Ok(claims)
}

/// Returns true if the key has made the signature.
fn is_signed(alg: &str, key: &Key, signed: &[u8], signature: &[u8]) -> bool {
    let part = |text: &str| URL_SAFE_NO_PAD.decode(text).ok();
    match alg {
        "ES256" | "ES384" => {
            let (curve, length): (&dyn signature::VerificationAlgorithm, _) = match (alg, key.crv.as_str()) {
                ("ES256", "P-256") => (&signature::ECDSA_P256_SHA256_FIXED, 32),
                ("ES384", "P-384") => (&signature::ECDSA_P384_SHA384_FIXED, 48),
                _ => return false,
            };
            let (Some(x), Some(y)) = (part(&key.x), part(&key.y)) else { return false };
            if x.len() != length || y.len() != length {
                return false;
            }
            let point = [&[4][..], &x, &y].concat();
            UnparsedPublicKey::new(curve, point).verify(signed, signature).is_ok()
        }
        _ => {
            let parameters = match alg {
                "RS256" => &signature::RSA_PKCS1_2048_8192_SHA256,
                "RS384" => &signature::RSA_PKCS1_2048_8192_SHA384,
                "RS512" => &signature::RSA_PKCS1_2048_8192_SHA512,
                "PS256" => &signature::RSA_PSS_2048_8192_SHA256,
                _ => return false,
            };
            let (Some(n), Some(e)) = (part(&key.n), part(&key.e)) else { return false };
            // The library wants numbers without zeros before them.
            let trimmed = |bytes: Vec<u8>| bytes.into_iter().skip_while(|byte| *byte == 0).collect::<Vec<_>>();
            RsaPublicKeyComponents { n: trimmed(n), e: trimmed(e) }.verify(parameters, signed, signature).is_ok()
        }
    }
}

fn check(claims: &Claims, expected: &Expected<'_>) -> Result<(), BadToken> {
    let text = |name: &str| claims.get(name).and_then(Value::as_str);
    // A number in another type is a wrong claim, and no missing one.
    let time = |name: &str| claims.get(name).map(|value| value.as_f64().map(|seconds| seconds as i64));
    if text("iss") != Some(expected.issuer) {
        return Err(BadToken::Claim("iss"));
    }
    let audience: Vec<&str> = match claims.get("aud") {
        Some(Value::String(one)) => vec![one],
        Some(Value::Array(several)) => several.iter().filter_map(Value::as_str).collect(),
        _ => Vec::new(),
    };
    if !audience.contains(&expected.client_id) {
        return Err(BadToken::Claim("aud"));
    }
    let party = claims.get("azp").map(|party| party.as_str() == Some(expected.client_id));
    if party == Some(false) || audience.len() > 1 && party.is_none() {
        return Err(BadToken::Claim("azp"));
    }
    if time("exp").flatten().is_none_or(|ends| ends <= expected.now - SKEW) {
        return Err(BadToken::Claim("exp"));
    }
    if time("iat").flatten().is_none_or(|made| made > expected.now + SKEW) {
        return Err(BadToken::Claim("iat"));
    }
    if time("nbf").is_some_and(|begins| begins.is_none_or(|begins| begins > expected.now + SKEW)) {
        return Err(BadToken::Claim("nbf"));
    }
    if text("nonce") != Some(expected.nonce) {
        return Err(BadToken::Claim("nonce"));
    }
    if text("sub").is_none_or(str::is_empty) {
        return Err(BadToken::Claim("sub"));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use ring::{
        rand::SystemRandom,
        signature::{ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, KeyPair},
    };
    use serde_json::json;

    use super::*;

    const EXPECTED: Expected<'static> = Expected { issuer: "https://sso", client_id: "tampu", nonce: "n-1", now: 1_800_000_000 };

    struct Signer(EcdsaKeyPair, Key);

    fn signer(kid: &str) -> Signer {
        let random = SystemRandom::new();
        let pair = EcdsaKeyPair::generate_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, &random).unwrap();
        let pair = EcdsaKeyPair::from_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, pair.as_ref(), &random).unwrap();
        let point = pair.public_key().as_ref();
        let (x, y) = (URL_SAFE_NO_PAD.encode(&point[1..33]), URL_SAFE_NO_PAD.encode(&point[33..]));
        let key = Key { kty: "EC".into(), crv: "P-256".into(), kid: Some(kid.into()), x, y, ..Key::default() };
        Signer(pair, key)
    }

    impl Signer {
        fn sign(&self, header: Value, claims: &Value) -> String {
            let part = |value: &Value| URL_SAFE_NO_PAD.encode(value.to_string());
            let signed = format!("{}.{}", part(&header), part(claims));
            let signature = self.0.sign(&SystemRandom::new(), signed.as_bytes()).unwrap();
            format!("{signed}.{}", URL_SAFE_NO_PAD.encode(signature))
        }

        fn token(&self, claims: &Value) -> String {
            self.sign(json!({ "alg": "ES256", "kid": self.1.kid }), claims)
        }
    }

    fn claims() -> Value {
        let now = EXPECTED.now;
        json!({ "iss": "https://sso", "aud": "tampu", "sub": "7", "nonce": "n-1", "exp": now + 300, "iat": now - 1 })
    }

    #[test]
    fn a_token_of_the_provider_is_accepted_and_a_changed_one_is_not() {
        let signer = signer("a");
        let keys = [signer.1.clone()];
        let token = signer.token(&claims());
        assert_eq!(verify(&token, &keys, &EXPECTED).unwrap()["sub"], "7");
        assert_eq!(verify(&token, &[], &EXPECTED), Err(BadToken::NoKey));
        // Each byte matters, except that the last character of base64 may have bits without a meaning.
        for at in 0..token.len() - 1 {
            let mut changed = token.clone().into_bytes();
            changed[at] = if changed[at] == b'A' { b'B' } else { b'A' };
            assert!(verify(&String::from_utf8(changed).unwrap(), &keys, &EXPECTED).is_err(), "{at}");
            assert!(verify(&token[..at], &keys, &EXPECTED).is_err(), "{at}");
        }
        let other = self::signer("a");
        assert_eq!(verify(&token, std::slice::from_ref(&other.1), &EXPECTED), Err(BadToken::Signature));
        // Two keys without names are both tried.
        let nameless = |key: &Key| Key { kid: None, ..key.clone() };
        let token = signer.sign(json!({ "alg": "ES256" }), &claims());
        assert!(verify(&token, &[nameless(&other.1), nameless(&signer.1)], &EXPECTED).is_ok());
    }

    #[test]
    fn no_token_chooses_its_own_key_or_none() {
        let signer = signer("a");
        let keys = [signer.1.clone()];
        for alg in ["none", "None", "HS256", "", "ES512", "RS256"] {
            assert!(verify(&signer.sign(json!({ "alg": alg, "kid": "a" }), &claims()), &keys, &EXPECTED).is_err(), "{alg}");
        }
        let header = json!({ "alg": "ES256", "kid": "a", "crit": ["exp"] });
        assert!(matches!(verify(&signer.sign(header, &claims()), &keys, &EXPECTED), Err(BadToken::Malformed(_))));
        let encryption = Key { usage: Some("enc".into()), ..signer.1.clone() };
        assert_eq!(verify(&signer.token(&claims()), &[encryption], &EXPECTED), Err(BadToken::NoKey));
        let unsigned =
            format!("{}.{}.", URL_SAFE_NO_PAD.encode(r#"{"alg":"none"}"#), URL_SAFE_NO_PAD.encode(claims().to_string()));
        assert!(matches!(verify(&unsigned, &keys, &EXPECTED), Err(BadToken::Algorithm(_))));
    }

    #[test]
    fn every_claim_is_checked() {
        let signer = signer("a");
        let keys = [signer.1.clone()];
        let now = EXPECTED.now;
        for (name, value, accepted) in [
            ("iss", json!("https://evil"), false),
            ("aud", json!("other"), false),
            ("aud", json!(["other", "tampu"]), false),
            ("aud", json!(["tampu"]), true),
            ("azp", json!("other"), false),
            ("azp", json!("tampu"), true),
            ("exp", json!(now - 61), false),
            ("exp", json!(now - 1), true),
            ("exp", json!((now + 60).to_string()), false),
            ("iat", json!(now + 120), false),
            ("nbf", json!(now + 120), false),
            ("nbf", json!("x"), false),
            ("nonce", json!("n-2"), false),
            ("sub", json!(""), false),
            ("sub", json!(7), false),
        ] {
            let mut claims = claims();
            claims[name] = value.clone();
            assert_eq!(verify(&signer.token(&claims), &keys, &EXPECTED).is_ok(), accepted, "{name} {value}");
        }
        for name in ["iss", "aud", "exp", "iat", "nonce", "sub"] {
            let mut claims = claims();
            claims.as_object_mut().unwrap().remove(name);
            assert_eq!(verify(&signer.token(&claims), &keys, &EXPECTED), Err(BadToken::Claim(name)));
        }
    }
}
