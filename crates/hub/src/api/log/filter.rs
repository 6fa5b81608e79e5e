//! Parameters as a query.

use tampu_archive::query::{Query, TERMS};

use super::super::call::Call;
use crate::http::problem::Problem;

/// Reads the conditions and the range of a request.
pub(in crate::api) fn query(call: &Call<'_>) -> Result<Query, Problem> {
    let (since, until) = call.range()?;
    let mut query = Query { since, until, ..Query::default() };
    for (name, value) in call.query.iter().filter(|(name, value)| TERMS.contains(&name.as_str()) && !value.is_empty()) {
        query.add_term(name, value).map_err(|why| Problem::bad(&format!("query {name}"), why.to_string()))?;
    }
    // The collector would refuse an invalid expression as well, without the name of the parameter.
    query.compile().map_err(|why| Problem::new(http::StatusCode::BAD_REQUEST, "bad-query", why.to_string()).at("query regex"))?;
    Ok(query)
}
