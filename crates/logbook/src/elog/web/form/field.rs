//! The field of an attribute, by its kind.

use super::MAX_VALUE;
use crate::{
    book::{AttributeDef, AttributeKind},
    elog::web::{
        BookAsk,
        clock::Zone,
        html::{Raw, put},
        values,
    },
};
use tampu_types::Time;

/// The name of an attribute's field: everything but letters and digits of ASCII is `_`, as ELOG's client has it.
pub fn field_name(attribute: &str) -> String {
    attribute.bytes().map(|byte| if byte.is_ascii_alphanumeric() { char::from(byte) } else { '_' }).collect()
}

/// A field of an attribute.
pub struct Field<'a> {
    /// The request.
    pub ask: &'a BookAsk<'a>,
    /// The attribute, as it is under the conditions that are set.
    pub def: &'a AttributeDef,
    /// Its place in the book.
    pub index: usize,
    /// Whether what is chosen decides what else the form has.
    pub decides: bool,
    /// What it says.
    pub said: Vec<String>,
    /// Characters, if the configuration says how many.
    pub width: Option<u32>,
    /// A class of a site's styles.
    pub class: &'a str,
}

impl Field<'_> {
    /// Writes it.
    pub fn write(&self, out: &mut String) {
        let (name, value) = (field_name(&self.def.name), self.said.first().cloned().unwrap_or_default());
        let options: Vec<(String, String)> = self.def.options.iter().map(|option| (option.clone(), option.clone())).collect();
        match self.def.kind {
            AttributeKind::Text => self.line(&name, &value, "text", out),
            AttributeKind::Numeric => self.line(&name, &value, "decimal", out),
            AttributeKind::Options if self.def.extendable => self.extendable(&name, &value, out),
            AttributeKind::Options => self.select(&name, &value, options, out),
            AttributeKind::UserList => self.select(&name, &value, self.users(), out),
            AttributeKind::Multiple => self.boxes(&name, options, out),
            AttributeKind::UserLists => self.boxes(&name, self.users(), out),
            AttributeKind::Radio => self.radio(&name, &value, out),
            AttributeKind::Boolean => {
                let checked = Raw(if value == "1" { " checked" } else { "" });
                put!(out, "<input type=\"checkbox\" name=\"{}\" value=\"1\"{}{}>", name, checked, self.mark());
            }
            AttributeKind::Date => self.date(&value, false, out),
            AttributeKind::DateTime => self.date(&value, true, out),
        }
    }

    fn users(&self) -> Vec<(String, String)> {
        self.ask.site.users()
    }

    fn required(&self) -> Raw<&'static str> {
        Raw(if self.def.required { " required" } else { "" })
    }

    fn mark(&self) -> Raw<&'static str> {
        Raw(if self.decides { " data-decides" } else { "" })
    }

    fn line(&self, name: &str, value: &str, mode: &str, out: &mut String) {
        put!(
            out,
            "<input type=\"text\" name=\"{}\" value=\"{}\" class=\"{}\" size=\"{}\" maxlength=\"{}\" inputmode=\"{}\"{}>",
            name,
            value,
            self.class,
            self.width.unwrap_or(80),
            MAX_VALUE,
            mode,
            self.required()
        );
    }

    /// What can be chosen, or something new.
    fn extendable(&self, name: &str, value: &str, out: &mut String) {
        put!(
            out,
            "<input type=\"text\" name=\"{}\" value=\"{}\" class=\"{}\" size=\"{}\" maxlength=\"{}\" list=\"options{}\"{}{}>",
            name,
            value,
            self.class,
            self.width.unwrap_or(40),
            MAX_VALUE,
            self.index,
            self.required(),
            self.mark()
        );
        put!(out, "<datalist id=\"options{}\">", self.index);
        for option in &self.def.options {
            put!(out, "<option value=\"{}\"></option>", option);
        }
        out.push_str("</datalist>");
    }

    fn select(&self, name: &str, value: &str, options: Vec<(String, String)>, out: &mut String) {
        put!(out, "<select name=\"{}\" class=\"{}\"{}{}>", name, self.class, self.required(), self.mark());
        values::option(out, "", "- please select -", value.is_empty());
        let mut known = value.is_empty();
        for (option, text) in &options {
            known |= option == value;
            values::option(out, option, text, option == value);
        }
        if !known {
            // A value of another time is shown; it is refused when it is sent, unless it is what the entry had.
            values::option(out, value, value, true);
        }
        out.push_str("</select>");
    }

    fn boxes(&self, name: &str, mut options: Vec<(String, String)>, out: &mut String) {
        for value in &self.said {
            if !options.iter().any(|(option, _)| option == value) {
                options.push((value.clone(), value.clone()));
            }
        }
        for (nth, (option, text)) in options.iter().enumerate() {
            let checked = Raw(if self.said.contains(option) { " checked" } else { "" });
            put!(
                out,
                "<label><input type=\"checkbox\" name=\"{}_{}\" value=\"{}\"{}{}> {}</label> ",
                name,
                nth,
                option,
                checked,
                self.mark(),
                text
            );
        }
        if self.def.extendable {
            put!(
                out,
                "<input type=\"text\" name=\"{}_{}\" size=\"20\" maxlength=\"{}\" placeholder=\"another\">",
                name,
                options.len(),
                MAX_VALUE
            );
        }
    }

    fn radio(&self, name: &str, value: &str, out: &mut String) {
        for option in &self.def.options {
            let checked = Raw(if option == value { " checked" } else { "" });
            put!(
                out,
                "<label><input type=\"radio\" name=\"{}\" value=\"{}\"{}{}{}> {}</label> ",
                name,
                option,
                checked,
                self.required(),
                self.mark(),
                option
            );
        }
    }

    /// Month, day, year and clock, each a field.
    fn date(&self, value: &str, clock: bool, out: &mut String) {
        let zone: &Zone = &self.ask.site.config.zone;
        let at = value.trim().parse::<i64>().ok().map(|seconds| zone.fields(Time::from_unix(seconds, 0), 0));
        let part = |nth: usize| at.map(|fields| fields[nth].to_string()).unwrap_or_default();
        let mut number = |letter: &str, label: &str, text: &str, width: usize| {
            put!(
                out,
                "<input type=\"text\" inputmode=\"numeric\" name=\"{}{}\" value=\"{}\" size=\"{}\" maxlength=\"{}\" aria-label=\"{}\" placeholder=\"{}\">",
                letter,
                self.index,
                text,
                width,
                width,
                label,
                label
            );
        };
        number("y", "Year", &part(0), 5);
        number("m", "Month", &part(1), 6);
        number("d", "Day", &part(2), 4);
        if clock {
            number("h", "Hour", &part(3), 5);
            number("n", "Min", &part(4), 4);
            number("c", "Sec", &part(5), 4);
        }
    }
}
