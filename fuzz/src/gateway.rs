//! Demands on the frames of the gateway for any bytes: they are read in order without overlapping, and a frame that was
//! accepted survives being written and read again, with its body.

#![allow(dead_code, missing_docs)]

use tampu_types::gateway::{
    Frame, Kind,
    events::events,
    frame::samples,
    json_form::{from_text, to_text},
    messages::{Declare, End, GapInfo, Hello, Open, Receipt, Serve, Welcome},
    put_frame,
    question::{Answer, Ask, Passed},
};

const LIMIT: u32 = 1 << 16;

/// Frames, one after the other.
pub fn gateway(bytes: &[u8]) {
    let mut rest = bytes;
    while let Ok(Some((frame, after))) = Frame::first(rest, LIMIT) {
        let header = frame.header;
        let mut again = Vec::new();
        put_frame(&mut again, header.kind, header.flags, header.id, header.number, frame.body);
        assert_eq!(again, &rest[..rest.len() - after.len()]);
        body(&frame);
        text(&frame);
        rest = after;
    }
    // A text is a frame, whose header may still be wrong, or an error.
    if let Ok(text) = std::str::from_utf8(bytes)
        && let Ok(frame) = from_text(text)
    {
        let _ = Frame::first(&frame, LIMIT);
    }
}

/// A client's frame that has a text leads back from it.
fn text(frame: &Frame<'_>) {
    let Ok(text) = to_text(frame) else { return };
    if frame.header.kind.is_of_client()
        && let Ok(again) = from_text(&text)
    {
        let (again, _) = Frame::first(&again, u32::MAX).expect("its header is right").expect("it is whole");
        let head = |frame: &Frame<'_>| (frame.header.kind, frame.header.flags, frame.header.id, frame.header.number);
        assert_eq!(head(frame), head(&again), "{text}");
    }
}

fn body(frame: &Frame<'_>) {
    let body = frame.body;
    match frame.header.kind {
        Kind::Ack | Kind::Credit | Kind::Cancel => {
            if let Ok(value) = frame.value() {
                assert_eq!(body, value.to_le_bytes());
            }
        }
        Kind::Ask => {
            if let Ok(ask) = Ask::decode(body) {
                let mut again = Vec::new();
                ask.encode(&mut again);
                assert_eq!(Ask::decode(&again), Ok(ask));
            }
        }
        Kind::Question => {
            if let Ok(passed) = Passed::decode(body) {
                let mut again = Vec::new();
                passed.encode(&mut again);
                assert_eq!(Passed::decode(&again), Ok(passed));
            }
        }
        Kind::Answer => {
            if let Ok(answer) = Answer::decode(body) {
                let mut again = Vec::new();
                answer.encode(&mut again);
                assert_eq!(again, body);
            }
        }
        Kind::Serve => leads_back::<Serve>(body),
        Kind::Publish => assert!(samples(body).flatten().map(<[u8]>::len).sum::<usize>() <= body.len()),
        Kind::Events => assert!(events(body).flatten().map(|item| item.event.len()).sum::<usize>() <= body.len()),
        Kind::Hello => leads_back::<Hello>(body),
        Kind::Welcome => leads_back::<Welcome>(body),
        Kind::Bye | Kind::Ended => leads_back::<End>(body),
        Kind::Open => leads_back::<Open>(body),
        Kind::Declare => leads_back::<Declare>(body),
        Kind::Gap => leads_back::<GapInfo>(body),
        Kind::Receipt => leads_back::<Receipt>(body),
        _ => {}
    }
}

fn leads_back<T: serde::Serialize + serde::de::DeserializeOwned + PartialEq + std::fmt::Debug>(body: &[u8]) {
    let Ok(message) = serde_json::from_slice::<T>(body) else { return };
    let text = serde_json::to_vec(&message).expect("a message is JSON");
    assert_eq!(serde_json::from_slice::<T>(&text).expect("what was written can be read"), message);
}
