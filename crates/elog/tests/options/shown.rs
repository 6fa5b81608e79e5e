//! The way values and lines are shown, and the page of all logbooks.

use super::support::site::TestSite;

const DAY: &str = "2026-01-01T08:00:00";

/// A book `b` with these options and one entry.
fn book(options: &str) -> TestSite {
    let site = TestSite::new(&format!("[b]\nAttributes = Author, Type, Subject\nOptions Type = Routine, Problem\n{options}"));
    site.post("b", DAY, &["Author=Zoe", "Type=Problem", "Subject=HV trip"], "text");
    site
}

#[test]
fn change_and_list_change_shape_a_value() {
    let site = book("Change Subject = <b>$Subject</b><script>x</script>\nList Change Subject = in list: $Subject\n");
    assert_eq!(site.get("/b/1").page().texts("td.attribvalue b"), ["HV trip"]);
    assert!(!site.get("/b/1").body.contains("<script>x"));
    assert!(site.get("/b/").body.contains("in list: HV trip"));
    // Without its own format a list shows what the page of an entry shows.
    assert!(book("Change Subject = now $Subject\n").get("/b/").body.contains("now HV trip"));
    assert!(!book("List Change Subject = now $Subject\n").get("/b/1").body.contains("now HV trip"));
}

#[test]
fn a_line_has_the_style_of_a_value() {
    let style = |options: &str| {
        let page = book(options).get("/b/").page();
        page.all("table.list tr").iter().map(|row| row.get("style").to_owned()).collect::<String>()
    };
    assert_eq!(style("Style Type Problem = background-color:red\n"), "background-color:red");
    assert_eq!(style("Style Type Routine = background-color:red\n"), "");
}

#[test]
fn the_menu_of_lists_has_its_old_name_too() {
    let menu = |options: &str| book(options).get("/b/").page().texts("nav.menuframe a");
    assert_eq!(menu("Find menu commands = New, Find\n"), ["New", "Find"]);
    assert_eq!(menu("Find menu commands = New\nList Menu commands = Find\n"), ["Find"]);
    let site = book("Guest Find Menu commands = Find\nGuest Menu commands = List\n");
    let guest = site.person("", &[tampu_logbook::people::Right::Read]);
    assert_eq!(site.ask(&guest, "/b/", &[]).page().texts("nav.menuframe a"), ["Find"]);
}

/// Two top groups, as the page of all logbooks shows them with these global options.
fn groups(options: &str) -> TestSite {
    let site = TestSite::new(&format!(
        "[global]\n{options}Top group East = a\nTop group West = b\n[a]\nComment = of a\nAttributes = Author\n[b]\nAttributes = Author\n"
    ));
    site.post("a", DAY, &["Author=Zoe"], "text");
    site
}

#[test]
fn the_page_of_all_logbooks_follows_its_options() {
    assert!(groups("").get("/").body.contains("of a") && !groups("Hide comments = 1\n").get("/").body.contains("of a"));
    assert!(groups("Last submission = by $author, number $message id\n").get("/").body.contains("<td>by Zoe, number 1</td>"));
    let closed = groups("Expand selection page = 0\n");
    assert_eq!(closed.get("/").page().texts("h2 a"), ["+ East", "+ West"]);
    assert!(closed.get("/").page().all("td.sellogbook").is_empty());
    assert_eq!(closed.get("/?group=East").page().texts("td.sellogbook"), ["a"]);
    let protected = groups("Protect selection page = 1\n");
    let guest = protected.person("", &[tampu_logbook::people::Right::Read]);
    assert!(protected.ask(&guest, "/", &[]).body.contains("type=password"));
    assert!(!protected.get("/").body.contains("type=password"));
    assert!(groups("").ask(&guest, "/", &[]).page().texts("td.sellogbook").contains(&"a".to_owned()));
}

/// A site whose file has another order than the alphabet.
fn ordered() -> TestSite {
    TestSite::new(
        "[global]\nTop group West = z, inner\nTop group East = m, a\nGroup inner = y, x\nWelcome Title = of all\n\
         [global East]\nWelcome Title = of East\nMain Tab = Home\n[a]\nAttributes = Author\n[m]\nAttributes = Author\n\
         [x]\nAttributes = Author\n[y]\nAttributes = Author\n[z]\nAttributes = Author\n[free]\nAttributes = Author\n",
    )
}

#[test]
fn logbooks_and_groups_stand_in_the_order_of_the_file() {
    let page = ordered().get("/").page();
    assert_eq!(page.texts("h2"), ["West", "East", "Other logbooks"]);
    assert_eq!(page.texts("td.sellogbook"), ["z", "y", "x", "m", "a", "free"]);
    let tabs = ordered().get("/a/").page().texts("nav.tabs a");
    assert_eq!(tabs, ["Home", "West", "East", "m", "a"]);
}

#[test]
fn the_page_of_all_logbooks_has_the_title_of_all() {
    assert_eq!(ordered().get("/").page().texts(".seltitle"), ["of all"]);
    assert_eq!(ordered().get("/?group=East").page().texts(".seltitle"), ["of East"]);
    assert!(!ordered().get("/").body.contains("Home"));
}

#[test]
fn a_line_follows_the_conditions_of_its_entry() {
    let lines = |options: &str| {
        let site = TestSite::new(&format!(
            "[b]\nAttributes = Author, Type, Run\nOptions Type = Routine{{a}}, Problem{{b}}\nList display = ID, Type, Run\n\
             {{a}}List display = ID, Type\n{{b}}List Change Run = <b>run $Run</b>\n{{b}}Style Type Problem = background-color:red\n{options}"
        ));
        site.post("b", DAY, &["Author=Zoe", "Type=Routine", "Run=7"], "text");
        site.post("b", "2026-01-02T08:00:00", &["Author=Zoe", "Type=Problem", "Run=8"], "text");
        let page = site.get("/b/").page();
        let rows: Vec<Vec<String>> = page.all("table.list tr")[1..].iter().map(|row| row.texts("td")[..3].to_vec()).collect();
        (rows, page.all("table.list tr")[2].get("style").to_owned())
    };
    let (rows, style) = lines("List conditions = 1\n");
    assert_eq!(
        (rows, style.as_str()),
        (
            vec![vec!["1", "Routine", ""], vec!["2", "Problem", "run 8"]]
                .into_iter()
                .map(|row| row.into_iter().map(str::to_owned).collect())
                .collect::<Vec<Vec<String>>>(),
            "background-color:red"
        )
    );
    let (rows, style) = lines("");
    assert_eq!((rows[0][2].as_str(), rows[1][2].as_str(), style.as_str()), ("7", "8", ""));
}

#[test]
fn a_list_has_columns_with_commands() {
    let site = book("List display = Edit, Delete, ID, Subject\n");
    let page = site.get("/b/").page();
    assert_eq!(page.texts("th.listtitle")[..2], ["Edit", "Delete"]);
    let links: Vec<String> = page.all("a.command").iter().map(|link| link.get("href").to_owned()).collect();
    assert_eq!(links, ["../b/1?cmd=Edit", "../b/1?cmd=Delete"]);
    let guest = site.person("", &[tampu_logbook::people::Right::Read]);
    assert!(site.ask(&guest, "/b/", &[]).page().all("a.command").is_empty());
}

#[test]
fn a_quick_filter_searches_texts() {
    let site = book("Quick filter = Subtext, Type\n");
    assert_eq!(site.get("/b/").page().one("form.quickfilter input[name=subtext]").get("value"), "");
    let found = site.get("/b/?subtext=tex");
    assert_eq!((found.ids(), found.page().one("form.quickfilter input[name=subtext]").get("value")), (vec![1], "tex"));
    // The field takes the place of a hidden one.
    assert_eq!(found.page().all("form.quickfilter input").len(), 2);
}

#[test]
fn an_attribute_without_a_value_has_a_style() {
    let styles = |said: &[&str]| {
        let site =
            TestSite::new("[b]\nAttributes = Author, Type\nStyle Type \"\" = color:red\nCell Style Type \"\" = color:blue\n");
        site.post("b", DAY, said, "text");
        let page = site.get("/b/").page();
        let cells: Vec<String> =
            page.all("td").iter().map(|cell| cell.get("style").to_owned()).filter(|style| !style.is_empty()).collect();
        (page.all("table.list tr")[1].get("style").to_owned(), cells)
    };
    assert_eq!(styles(&["Author=Zoe"]), ("color:red".to_owned(), vec!["color:blue".to_owned()]));
    assert_eq!(styles(&["Author=Zoe", "Type=x"]), (String::new(), vec![]));
}
