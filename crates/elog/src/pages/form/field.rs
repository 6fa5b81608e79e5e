//! The field of an attribute, by its kind.

use tampu_logbook::book::{AttributeDef, AttributeKind};
use tampu_types::Time;

use crate::pages::{
    address::escape,
    choice,
    clock::Zone,
    html::{SafeHtml, put},
    request::BookRequest,
};

/// The bytes of a value that ELOG accepts.
const MAX_VALUE: usize = 1500;

/// Returns the name of an attribute's field: every character but letters and digits of ASCII becomes `_`, as in ELOG's
/// client.
pub fn field_name(attribute: &str) -> String {
    attribute.bytes().map(|byte| if byte.is_ascii_alphanumeric() { char::from(byte) } else { '_' }).collect()
}

/// A field of an attribute.
pub struct AttributeField<'a> {
    pub request: &'a BookRequest<'a>,
    /// The attribute, under the active conditions.
    pub def: &'a AttributeDef,
    /// Its index in the book.
    pub index: usize,
    /// True if its value decides about other fields of the form.
    pub decides: bool,
    /// The values of the attribute.
    pub said: Vec<String>,
    /// The width in characters, if it is configured.
    pub width: Option<u32>,
    /// A class of a site's styles.
    pub class: &'a str,
}

impl AttributeField<'_> {
    /// Returns true if the attribute has several elements, which are labelled as a group.
    pub fn is_group(kind: AttributeKind) -> bool {
        use AttributeKind::{Date, DateTime, Multiple, Radio, UserLists};
        matches!(kind, Multiple | UserLists | Radio | Date | DateTime)
    }

    /// Writes the field as HTML. The id of a single element is `f` with the index of the attribute.
    pub fn write(&self, out: &mut String) {
        let (name, value) = (field_name(&self.def.name), self.said.join(" | "));
        let options: Vec<(String, String)> = self.def.options.iter().map(|option| (option.clone(), option.clone())).collect();
        match self.def.kind {
            AttributeKind::Text if self.def.multi_line => self.lines(&name, &value, out),
            AttributeKind::Text => self.line(&name, &value, "text", out),
            AttributeKind::Numeric => self.line(&name, &value, "decimal", out),
            AttributeKind::Options if self.def.extendable => self.extendable(&name, &value, out),
            AttributeKind::Options => self.select(&name, &value, options, out),
            AttributeKind::UserList => self.select(&name, &value, self.users(), out),
            AttributeKind::Multiple => self.boxes(&name, options, out),
            AttributeKind::UserLists => self.boxes(&name, self.users(), out),
            AttributeKind::Tags => self.tags(&name, out),
            AttributeKind::Radio => self.radio(&name, &value, out),
            AttributeKind::Boolean => {
                let checked = SafeHtml(if value == "1" { " checked" } else { "" });
                put!(
                    out,
                    "<input type=\"checkbox\" id=\"f{}\" name=\"{}\" value=\"1\"{}{}>",
                    self.index,
                    name,
                    checked,
                    self.mark()
                );
            }
            AttributeKind::Date => self.date(&value, false, out),
            AttributeKind::DateTime => self.date(&value, true, out),
        }
    }

    fn users(&self) -> Vec<(String, String)> {
        self.request.site.users()
    }

    fn required(&self) -> SafeHtml<&'static str> {
        SafeHtml(if self.def.required { " required" } else { "" })
    }

    fn mark(&self) -> SafeHtml<&'static str> {
        SafeHtml(if self.decides { " data-decides" } else { "" })
    }

    fn line(&self, name: &str, value: &str, mode: &str, out: &mut String) {
        put!(
            out,
            "<input type=\"text\" id=\"f{}\" name=\"{}\" value=\"{}\" class=\"{}\" size=\"{}\" maxlength=\"{}\" inputmode=\"{}\"{}>",
            self.index,
            name,
            value,
            self.class,
            self.width.unwrap_or(80),
            MAX_VALUE,
            mode,
            self.required()
        );
    }

    fn lines(&self, name: &str, value: &str, out: &mut String) {
        // Browsers drop the first line end of a text area.
        put!(
            out,
            "<textarea id=\"f{}\" name=\"{}\" class=\"{}\" cols=\"{}\" rows=\"4\" maxlength=\"{}\"{}>\n{}</textarea>",
            self.index,
            name,
            self.class,
            self.width.unwrap_or(80),
            MAX_VALUE,
            self.required(),
            value
        );
    }

    /// Writes a field for labels, separated by commas. The known ones are offered.
    fn tags(&self, name: &str, out: &mut String) {
        put!(
            out,
            "<input type=\"text\" id=\"f{}\" name=\"{}\" value=\"{}\" class=\"{}\" size=\"{}\" maxlength=\"{}\" list=\"options{}\" data-tags{}{} \
             placeholder=\"tags, separated by commas\">",
            self.index,
            name,
            self.said.join(", "),
            self.class,
            self.width.unwrap_or(80),
            MAX_VALUE,
            self.index,
            self.required(),
            self.mark()
        );
        self.offered(out);
    }

    /// Writes a field with options that also accepts a new one.
    fn extendable(&self, name: &str, value: &str, out: &mut String) {
        put!(
            out,
            "<input type=\"text\" id=\"f{}\" name=\"{}\" value=\"{}\" class=\"{}\" size=\"{}\" maxlength=\"{}\" list=\"options{}\"{}{}>",
            self.index,
            name,
            value,
            self.class,
            self.width.unwrap_or(40),
            MAX_VALUE,
            self.index,
            self.required(),
            self.mark()
        );
        self.offered(out);
    }

    fn offered(&self, out: &mut String) {
        put!(out, "<datalist id=\"options{}\">", self.index);
        for option in &self.def.options {
            put!(out, "<option value=\"{}\"></option>", option);
        }
        out.push_str("</datalist>");
    }

    fn select(&self, name: &str, value: &str, options: Vec<(String, String)>, out: &mut String) {
        put!(out, "<select id=\"f{}\" name=\"{}\" class=\"{}\"{}{}>", self.index, name, self.class, self.required(), self.mark());
        choice::option(out, "", &format!("- {} -", self.request.word("please select")), value.is_empty());
        let mut known = value.is_empty();
        for (option, text) in &options {
            known |= option == value;
            choice::option(out, option, text, option == value);
        }
        if !known {
            // A value of an older configuration is shown; it is rejected when sent, unless the entry had it before.
            choice::option(out, value, value, true);
        }
        out.push_str("</select>");
    }

    fn boxes(&self, name: &str, mut options: Vec<(String, String)>, out: &mut String) {
        // Without the condition the values were one text.
        let parts = self.said.iter().flat_map(|value| value.split(" | ")).map(str::trim).filter(|value| !value.is_empty());
        let said: Vec<String> = parts.map(str::to_owned).collect();
        for value in &said {
            if !options.iter().any(|(option, _)| option == value) {
                options.push((value.clone(), value.clone()));
            }
        }
        for (nth, (option, text)) in options.iter().enumerate() {
            let checked = SafeHtml(if said.contains(option) { " checked" } else { "" });
            put!(
                out,
                "<label{}><input type=\"checkbox\" name=\"{}_{}\" value=\"{}\"{}{}> {}</label> ",
                SafeHtml(title(self.request.settings.tooltip(&format!("{} {option}", self.def.name), &[]))),
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
        let is_new = !value.is_empty() && !self.def.options.iter().any(|option| option == value);
        // With a field for another value, none of the options needs to be chosen.
        let required = if self.def.extendable { SafeHtml("") } else { self.required() };
        let is_icon = self.request.settings.is_icon(&self.def.name);
        let image = |option: &str| {
            let mut out = String::new();
            if is_icon && !self.request.site.has_image(option) {
                put!(&mut out, "{}", self.request.settings.icon_comment(option));
            } else if is_icon {
                let comment = self.request.settings.icon_comment(option);
                put!(&mut out, "<img class=\"icon\" src=\"icons/{}\" alt=\"{}\" title=\"{}\">", escape(option), comment, comment);
            }
            out
        };
        let typed = if is_new { Some(value) } else { None };
        for option in self.def.options.iter().map(String::as_str).chain(typed) {
            let checked = SafeHtml(if option == value { " checked" } else { "" });
            put!(
                out,
                "<label><input type=\"radio\" name=\"{}\" value=\"{}\"{}{}{}> {}{}</label> ",
                name,
                option,
                checked,
                required,
                self.mark(),
                SafeHtml(image(option)),
                if is_icon { "" } else { option }
            );
        }
        if self.def.extendable {
            put!(
                out,
                "<input type=\"text\" name=\"{}_0\" size=\"20\" maxlength=\"{}\" placeholder=\"another\">",
                name,
                MAX_VALUE
            );
        }
    }

    /// Writes year, month, day and clock, each in a field, as elogd's forms send them. The script of forms shows one field in
    /// their place.
    fn date(&self, value: &str, clock: bool, out: &mut String) {
        let zone: &Zone = &self.request.zone;
        let at = value.trim().parse::<i64>().ok().map(|seconds| zone.fields(Time::from_unix(seconds, 0), 0));
        let part = |nth: usize| at.map(|fields| fields[nth].to_string()).unwrap_or_default();
        let number = |letter: &str, label: &str, text: &str, width: usize, out: &mut String| {
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
        out.push_str("<span class=\"moment\">");
        let mut number = |letter: &str, label: &str, text: &str, width: usize| number(letter, label, text, width, out);
        number("y", "Year", &part(0), 5);
        number("m", "Month", &part(1), 6);
        number("d", "Day", &part(2), 4);
        if clock {
            number("h", "Hour", &part(3), 5);
            number("n", "Min", &part(4), 4);
            number("c", "Sec", &part(5), 4);
        }
        out.push_str("</span>");
    }
}

/// Returns the attribute of an element that has a tooltip.
fn title(text: &str) -> String {
    let mut out = String::new();
    if !text.is_empty() {
        put!(&mut out, " title=\"{}\"", text);
    }
    out
}
