//! A record in a format for other programs, with every field: JSON, or the XML of ACS.
//!
//! Both formats have writers that take a [`LogRecord`]. One `LogRecord` is reused for all calls, so texts are copied
//! but no memory is allocated for them.

use tampu_types::{
    Datum, Incarnation, LogRecord, RecordId,
    xml::{AcsXmlOptions, write_record},
};

use crate::logger::packet::{Called, thread_name};

/// ACS's three decimals, one record a line.
const XML: AcsXmlOptions = AcsXmlOptions { nanoseconds: false, identity: true, received: false, one_line: true };

/// Writes records with all their fields.
pub struct Whole {
    xml: bool,
    life: Incarnation,
    record: LogRecord,
    /// Site, identity and thread of the call that `record` was made of last.
    origin: Option<(u32, u32, u32)>,
    json: Vec<u8>,
}

impl Whole {
    pub fn json(life: Incarnation) -> Whole {
        Whole { xml: false, life, record: LogRecord::default(), origin: None, json: Vec::new() }
    }

    pub fn xml(life: Incarnation) -> Whole {
        Whole { xml: true, ..Whole::json(life) }
    }

    /// Appends a record made by hand.
    pub fn record(&mut self, out: &mut String, record: &LogRecord) {
        put(self.xml, &mut self.json, out, record);
    }

    /// Appends the record of a log statement.
    pub fn call(&mut self, out: &mut String, called: &Called<'_>) {
        let origin = Some((called.site_id, called.identity_id, called.thread.id()));
        if self.origin != origin {
            self.origin = origin;
            self.begin_origin(called);
        }
        let record = &mut self.record;
        record.id = Some(RecordId { incarnation: self.life, ring: called.ring, number: called.number });
        record.time = called.time;
        record.level = called.level;
        replace(&mut record.message, called.rendered.message());
        let values = called.rendered.values();
        record.data.resize_with(values.len(), Datum::default);
        for (datum, (name, value)) in record.data.iter_mut().zip(values) {
            replace(&mut datum.name, name);
            replace(&mut datum.value, value);
        }
        put(self.xml, &mut self.json, out, record);
    }

    /// Begins the part that records of one place share.
    fn begin_origin(&mut self, called: &Called<'_>) {
        let Called { site, fields, .. } = called;
        let record = &mut self.record;
        for (field, text) in [
            (&mut record.logger, fields.logger.as_str()),
            (&mut record.file, &site.file),
            (&mut record.routine, &site.routine),
            (&mut record.host, called.host),
            (&mut record.process, called.process),
            (&mut record.thread, &thread_name(called.thread)),
            (&mut record.context, &fields.context),
            (&mut record.source_object, &fields.source_object),
            (&mut record.array, &fields.array),
            (&mut record.antenna, &fields.antenna),
            (&mut record.run_id, &fields.run_id),
            (&mut record.stack_id, &fields.stack_id),
        ] {
            replace(field, text);
        }
        record.line = site.known_line();
        record.stack_level = fields.stack_level;
        record.audiences.clone_from(&fields.audiences);
    }
}

fn replace(field: &mut String, text: &str) {
    field.clear();
    field.push_str(text);
}

fn put(xml: bool, json: &mut Vec<u8>, out: &mut String, record: &LogRecord) {
    if xml {
        write_record(out, record, XML);
    } else {
        json.clear();
        // Every value of a record converts to JSON, and writing to memory does not fail.
        if serde_json::to_writer(&mut *json, record).is_ok()
            && let Ok(text) = std::str::from_utf8(json)
        {
            out.push_str(text);
        }
    }
    out.push('\n');
}
