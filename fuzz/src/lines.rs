//! Demands on the decoder of the bridge to Tango, for any bytes: it returns, and a value it accepted survives being
//! written and read again. As in `wire.rs` the decoder is taken file by file.

#![allow(dead_code, missing_docs)]

#[path = "../../crates/tango/src/line.rs"]
mod line;
#[path = "../../crates/tango/src/value.rs"]
mod value;

use line::{Line, Message};
use tampu_types::event::{EventSample, EventView};
use value::LineValue;

/// A line from Python.
pub fn tango_line(bytes: &[u8]) {
    let Ok(Line { message: Message::Event(event), .. }) = Line::parse(bytes) else { return };
    let Some(Ok(value)) = event.value.as_ref().map(LineValue::read) else { return };
    let (mut once, mut twice) = (Vec::new(), Vec::new());
    EventSample::of(1, value.as_value()).encode(&mut once).expect("what was read can be published");
    let view = EventView::parse(&once).expect("what was published can be read");
    let line = LineValue::of(&view.value.expect("it has a value"), view.shape).read().expect("a line that was written can be read");
    EventSample::of(1, line.as_value()).encode(&mut twice).expect("and published");
    assert_eq!(once, twice);
}
