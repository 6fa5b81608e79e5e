#![no_main]

#[allow(dead_code)]
#[path = "../../crates/hub/src/http/address.rs"]
mod address;

// What is decoded has no more bytes than the address, and decoding never fails for a text without a percent sign.
libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    match address::decoded(text) {
        Some(decoded) => assert!(decoded.len() <= text.len()),
        None => assert!(text.contains('%')),
    }
    if let Some(parameters) = address::parameters(text) {
        assert!(parameters.iter().map(|(name, value)| name.len() + value.len()).sum::<usize>() <= text.len());
    }
});
