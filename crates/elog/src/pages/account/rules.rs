//! The rules of a user for mails about new entries, on the page `Config`.

use tampu_logbook::{
    mail::MailError,
    notify::{Digest, NotifyError, NotifyRule, QuietHours, RuleAbout, rule},
    people::{PeopleError, Right, user::User},
};

use super::dialog::begin_form;
use crate::pages::{clock::Zone, html::put, mails::rule_test, request::PageRequest, sent::ReceivedForm};

/// The field that tells what a form of this part asks for.
pub const ACT: &str = "rule_act";

/// Writes the rules, and the forms to add and remove them. A site without mail has none.
pub fn write(request: &PageRequest<'_>, user: &User, body: &mut String) {
    if request.site.mail.is_none() {
        return;
    }
    let settings = rule::read(&*request.site.store, &user.login).unwrap_or_default();
    body.push_str(
        "<h2>Mail by rules</h2>\n<p class=\"note\">You are mailed what others write, and never your own entries.</p>\n",
    );
    for known in &settings.rules {
        begin_form(request, body, &[("config", user.login.as_str()), ("cmd", "Save"), ("rule", known.id.as_str())]);
        put!(
            body,
            "<p>{} <button name=\"{}\" value=\"test\">Test</button> <button name=\"{}\" value=\"remove\">Remove</button></p></form>\n",
            known.described(),
            ACT,
            ACT
        );
    }
    begin_form(request, body, &[("config", user.login.as_str()), (ACT, "add")]);
    body.push_str("<table><tr><th><label for=\"ra\">Mail me</label></th><td><select id=\"ra\" name=\"about\">\n");
    for (about, text) in [
        (RuleAbout::All, "new entries"),
        (RuleAbout::Replies, "replies to my entries"),
        (RuleAbout::Mentions, "entries with @ and my login"),
    ] {
        put!(body, "<option value=\"{}\">{}</option>\n", about.name(), text);
    }
    body.push_str("</select> in <select name=\"book\" aria-label=\"Logbook\"><option value=\"\">all logbooks</option>\n");
    let books = request.site.books().unwrap_or_default();
    for info in books.iter().filter(|info| request.sees(info)) {
        put!(body, "<option>{}</option>\n", info.book.name);
    }
    body.push_str(
        "</select></td></tr>\n<tr><th><label for=\"rq\">that match</label></th><td><input id=\"rq\" type=\"text\" name=\"query\" size=\"40\" \
         maxlength=\"1000\" placeholder=\"a query, as: HV type:Problem\"></td></tr>\n<tr><th><label for=\"rd\">when</label></th><td>\
         <select id=\"rd\" name=\"digest\"><option value=\"off\">at once</option><option value=\"hourly\">once an hour</option>\
         <option value=\"daily\">once a day</option></select> <button name=\"cmd\" value=\"Save\">Add</button></td></tr></table></form>\n",
    );
    begin_form(request, body, &[("config", user.login.as_str()), (ACT, "quiet")]);
    let quiet = settings.quiet.unwrap_or_default();
    put!(
        body,
        "<p>No such mail from <input type=\"time\" name=\"from\" aria-label=\"from\" value=\"{}\"> to <input type=\"time\" name=\"to\" \
         aria-label=\"to\" value=\"{}\"> in the zone <input type=\"text\" name=\"zone\" size=\"16\" aria-label=\"zone\" value=\"{}\" \
         placeholder=\"Europe/Zurich\"> <button name=\"cmd\" value=\"Save\">Set</button></p></form>\n",
        quiet.from,
        quiet.to,
        quiet.zone
    );
}

/// Carries out what a form of this part asks for, and returns the word under which the page tells of it; `None` if the form is another one.
pub fn act(request: &PageRequest<'_>, user: &User, sent: &ReceivedForm) -> Option<Result<&'static str, PeopleError>> {
    let (store, login) = (&*request.site.store, user.login.as_str());
    let done = match sent.text(ACT) {
        "" => return None,
        "add" => add(request, login, sent),
        "remove" => rule::remove(store, login, sent.text("rule")).map(drop),
        "quiet" => set_quiet(request, login, sent),
        "test" => {
            let tested = test(request, user, sent.text("rule"));
            return Some(tested.map(|()| "tested").map_err(people_error));
        }
        other => Err(NotifyError::Invalid(format!("'{}' is not known", other.escape_debug()))),
    };
    Some(done.map(|()| "account").map_err(people_error))
}

fn people_error(error: NotifyError) -> PeopleError {
    match error {
        NotifyError::Store(error) => PeopleError::Store(error),
        error => PeopleError::Invalid(error.to_string()),
    }
}

/// Sends a test by the way of a rule's mails.
fn test(request: &PageRequest<'_>, user: &User, id: &str) -> Result<(), NotifyError> {
    let settings = rule::read(&*request.site.store, &user.login)?;
    let missing = || NotifyError::NoRule { login: user.login.clone(), id: id.to_owned() };
    let rule = settings.rules.iter().find(|rule| rule.id == id).ok_or_else(missing)?;
    let outbox = request.site.mail.as_deref().ok_or_else(|| NotifyError::Invalid(MailError::NotConfigured.to_string()))?;
    let sent = rule_test::send(outbox, user, rule, &user.login).map_err(|error| NotifyError::Invalid(error.to_string()))?;
    let no_address = || NotifyError::Invalid("your account has no usable mail address: set one above".to_owned());
    sent.map(drop).ok_or_else(no_address)
}

fn add(request: &PageRequest<'_>, login: &str, sent: &ReceivedForm) -> Result<(), NotifyError> {
    let invalid = |why: tampu_types::named::UnknownName| NotifyError::Invalid(why.to_string());
    let books = request.site.books()?;
    let book = Some(sent.text("book")).filter(|book| !book.is_empty());
    if let Some(book) = book.filter(|book| !request.caller.rights.may(Right::Read, book)) {
        return Err(NotifyError::Invalid(format!("there is no logbook '{}' that you may read", book.escape_debug())));
    }
    let new = NotifyRule {
        book: book.map(str::to_owned),
        about: sent.text("about").parse::<RuleAbout>().map_err(invalid)?,
        query: sent.text("query").to_owned(),
        digest: sent.text("digest").parse::<Digest>().map_err(invalid)?,
        ..NotifyRule::default()
    };
    let attributes: Vec<String> = books.iter().flat_map(|info| &info.book.attributes).map(|one| one.name.clone()).collect();
    new.check(&attributes)?;
    rule::add(&*request.site.store, login, new).map(drop)
}

fn set_quiet(request: &PageRequest<'_>, login: &str, sent: &ReceivedForm) -> Result<(), NotifyError> {
    let text = |name: &str| sent.text(name).to_owned();
    let quiet = QuietHours { from: text("from"), to: text("to"), zone: text("zone") };
    if !quiet.zone.is_empty() {
        Zone::named(&quiet.zone).map_err(|why| NotifyError::Invalid(why.to_string()))?;
    }
    let none = quiet.from.is_empty() && quiet.to.is_empty();
    rule::set_quiet(&*request.site.store, login, (!none).then_some(quiet))
}
