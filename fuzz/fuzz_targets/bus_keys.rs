#![no_main]

// The keys are taken as they stand in `crates/bus`, because the crate would bring the engine along.
#[allow(dead_code)]
#[path = "../../crates/bus/src/qos.rs"]
mod qos;
mod engine {
    /// Stands for the own host in a key, as in `crates/bus/src/engine/contract.rs`.
    pub const OWN_HOST: &str = "@";
}
#[allow(dead_code)]
#[path = "../../crates/bus/src/wire/keys.rs"]
mod keys;

// A member's presence that was read is written and read again as the same.
libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    let Ok(domain) = "lab".parse() else { return };
    let keys = keys::Keys::new(&domain);
    for key in [text.to_owned(), format!("tampu/lab/{text}")] {
        if let Some((incarnation, source)) = keys.parse_presence(&key) {
            assert_eq!(keys.parse_presence(&keys.presence(incarnation, &source)), Some((incarnation, source)));
        }
        if let Some(boot) = keys.parse_node(&key) {
            assert_eq!(keys.parse_node(&keys.node(boot)), Some(boot));
        }
        if let Some(reader) = keys.parse_reader(&key) {
            assert_eq!(keys.parse_reader(&keys.reader(&reader)), Some(reader));
        }
    }
});
