//! The JSON form of frames, for text messages of a WebSocket: `spec/wire/gateway.md`.
//!
//! Decision: every object says its own types, so a translator needs no memory of what was opened or declared before. It
//! may begin in the middle of a session, as after a lost connection. A body with samples has the length of its binary
//! form, which credit and window count.

use base64::{Engine, engine::general_purpose::STANDARD};
use serde::Deserialize;
use serde_json::{Value as Json, json};

use super::{
    events::events,
    frame::{BadFrame, Frame, Kind, put_frame, put_sample, samples},
    messages::Big,
    question::{Answer, Ask, Passed},
    reading::{event, reading, utc},
};
use crate::{BatchHeader, Incarnation, event::EventView, event::Reason, log_batch::decode_records};

/// Type of samples that are batches of log records.
const LOG_BATCH: u32 = 2;
/// Type of samples that are events.
const EVENT: u32 = 4;

/// Reason for which a text is no frame.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct BadText(pub String);

/// Writes a frame as text.
pub fn to_text(frame: &Frame<'_>) -> Result<String, BadFrame> {
    let header = &frame.header;
    let body = body(header.kind, frame.body).ok_or(BadFrame::Body(header.kind.name()))?;
    let mut all = json!({ "kind": header.kind.name(), "body": body });
    if header.id > 0 {
        all["id"] = json!(header.id);
    }
    if header.number > 0 {
        all["number"] = json!(Big(header.number));
    }
    if header.flags > 0 {
        all["flags"] = json!(header.flags);
    }
    Ok(all.to_string())
}

fn body(kind: Kind, body: &[u8]) -> Option<Json> {
    match kind {
        Kind::Ack | Kind::Credit | Kind::Cancel => Some(json!({ "value": Big(u64::from_le_bytes(body.try_into().ok()?)) })),
        Kind::Close => Some(json!({})),
        Kind::Publish => {
            let all: Option<Vec<String>> = samples(body).map(|sample| Some(STANDARD.encode(sample.ok()?))).collect();
            Some(json!({ "samples": all? }))
        }
        Kind::Ask => {
            let Ask { timeout_ms, all, service, question } = Ask::decode(body).ok()?;
            let question: Json = serde_json::from_slice(question).ok()?;
            Some(json!({ "service": service, "timeout_ms": timeout_ms, "all": all, "question": question }))
        }
        Kind::Data => data(body),
        Kind::Events => {
            let all: Option<Vec<Json>> = events(body).map(|item| one_event(&item.ok()?)).collect();
            Some(json!({ "bytes": body.len(), "events": all? }))
        }
        Kind::Part => {
            let (from, content) = body.split_first_chunk()?;
            Some(json!({ "from": Incarnation::from_bytes(*from).to_string(), "content": octets(content) }))
        }
        Kind::Question => {
            let Passed { number, timeout_ms, asker, question } = Passed::decode(body).ok()?;
            let question = if question.is_empty() { json!({}) } else { octets(question) };
            Some(json!({ "question": Big(number), "timeout_ms": timeout_ms, "asker": asker, "content": question }))
        }
        Kind::Answer => {
            let Answer { number, content } = Answer::decode(body).ok()?;
            let mut answer = json!({ "question": Big(number) });
            if !content.is_empty() {
                answer["content"] = octets(content);
            }
            Some(answer)
        }
        _ => serde_json::from_slice(body).ok(),
    }
}

/// Returns JSON, or other bytes as base64.
fn octets(bytes: &[u8]) -> Json {
    serde_json::from_slice(bytes).unwrap_or_else(|_| base64(bytes))
}

fn base64(bytes: &[u8]) -> Json {
    json!({ "base64": STANDARD.encode(bytes) })
}

fn data(bytes: &[u8]) -> Option<Json> {
    let (header, body) = BatchHeader::decode(bytes).ok()?;
    // What this release cannot read reaches the client as it is.
    let sample = |sample: &[u8]| match header.type_id {
        LOG_BATCH => decode_records(sample).map_or_else(|_| base64(sample), |records| json!({ "records": records })),
        EVENT => EventView::parse(sample).map_or_else(|_| base64(sample), |view| event(&view)),
        _ => base64(sample),
    };
    let all: Option<Vec<Json>> = samples(body).map(|one| Some(sample(one.ok()?))).collect();
    Some(json!({
        "bytes": bytes.len(),
        "incarnation": header.incarnation.to_string(),
        "stream": header.stream,
        "type": header.type_id,
        "first": Big(header.first),
        "count": header.count,
        "acquired": utc(header.acquired),
        "sent": utc(header.sent),
        "samples": all?,
    }))
}

fn one_event(item: &super::events::EventItem<'_>) -> Option<Json> {
    let reason = match item.reason {
        Reason::First => "first",
        Reason::Resumed => "resumed",
        _ => "update",
    };
    let event = EventView::parse(item.event).map_or_else(|_| base64(item.event), |view| event(&view));
    Some(json!({
        "attribute": item.attribute,
        "reason": reason,
        "unknown": item.unknown_before,
        "sent": utc(item.sent),
        "received": utc(item.received),
        "event": event,
    }))
}

#[derive(Deserialize)]
struct Text {
    kind: String,
    #[serde(default)]
    id: u32,
    #[serde(default)]
    number: Option<Big>,
    #[serde(default)]
    flags: u8,
    #[serde(default)]
    body: Json,
}

#[derive(Deserialize)]
struct Question {
    service: String,
    timeout_ms: u32,
    #[serde(default)]
    all: bool,
    #[serde(default)]
    question: Option<Json>,
}

#[derive(Deserialize)]
struct Answered {
    question: Big,
    #[serde(default)]
    content: Option<Json>,
}

/// Returns the octets of an answer; an object with `base64` alone is other bytes than JSON.
fn content_of(content: Option<Json>) -> Result<Vec<u8>, String> {
    let Some(content) = content else { return Ok(Vec::new()) };
    match content.as_object().filter(|object| object.len() == 1).and_then(|object| object.get("base64")) {
        Some(text) => STANDARD.decode(text.as_str().unwrap_or("?")).map_err(|_| "invalid base64 in the content".to_owned()),
        None => Ok(content.to_string().into_bytes()),
    }
}

#[derive(Deserialize)]
struct Number {
    value: Big,
}

#[derive(Deserialize)]
struct Samples {
    samples: Vec<Json>,
}

/// Reads a client's frame of a text; returns its bytes.
pub fn from_text(text: &str) -> Result<Vec<u8>, BadText> {
    let Text { kind, id, number, flags, body } = serde_json::from_str(text).map_err(|why| BadText(format!("no frame: {why}")))?;
    let kind = Kind::named(&kind).ok_or_else(|| BadText(format!("no frame has the kind '{}'", kind.escape_debug())))?;
    let bytes = bytes_of(kind, body).map_err(|why| BadText(format!("{}: {why}", kind.name())))?;
    let mut frame = Vec::new();
    put_frame(&mut frame, kind, flags, id, number.unwrap_or_default().0, &bytes);
    Ok(frame)
}

fn bytes_of(kind: Kind, body: Json) -> Result<Vec<u8>, String> {
    let text = |why: serde_json::Error| why.to_string();
    let mut bytes = Vec::new();
    match kind {
        Kind::Ack | Kind::Credit | Kind::Cancel => {
            let Number { value } = Number::deserialize(body).map_err(text)?;
            bytes.extend_from_slice(&value.0.to_le_bytes());
        }
        Kind::Close => {}
        Kind::Publish => {
            for (at, sample) in Samples::deserialize(body).map_err(text)?.samples.iter().enumerate() {
                let sample = match sample {
                    Json::String(text) => STANDARD.decode(text).map_err(|_| "invalid base64".to_owned()),
                    other => reading(other),
                };
                put_sample(&mut bytes, &sample.map_err(|why| format!("sample {at}: {why}"))?);
            }
        }
        Kind::Ask => {
            let Question { service, timeout_ms, all, question } = Question::deserialize(body).map_err(text)?;
            if service.len() > usize::from(u16::MAX) {
                return Err("the name of the service is too long".to_owned());
            }
            let question = question.map_or_else(String::new, |question| question.to_string());
            Ask { timeout_ms, all, service: &service, question: question.as_bytes() }.encode(&mut bytes);
        }
        Kind::Answer => {
            let Answered { question, content } = Answered::deserialize(body).map_err(text)?;
            Answer { number: question.0, content: &content_of(content)? }.encode(&mut bytes);
        }
        _ => match body {
            Json::Null => bytes.extend_from_slice(b"{}"),
            Json::Object(_) => bytes = body.to_string().into_bytes(),
            _ => return Err("the body is no object".to_owned()),
        },
    }
    Ok(bytes)
}
