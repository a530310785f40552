//! A SELECT with FACETs becomes several statements, each with a result set. All read the same
//! snapshot.

use remora_mysql::ErrorCode;

use crate::{
    Error, Result,
    parse::{Faceted, Source, faceted, split},
    state::SessionState,
};

/// A statement, split from a text.
pub(super) struct FacetedStatement {
    /// The statement to run.
    pub source: Source,
    /// The number of FACETs that follow it.
    pub facets: usize,
}

/// The statements in the order in which they run: a SELECT before its FACETs.
///
/// # Errors
/// 1064 for a malformed FACET, 1312 if the client does not accept several result sets.
pub(super) fn spread(state: &SessionState, sources: Vec<Source>) -> Result<Vec<FacetedStatement>> {
    let mut all = Vec::with_capacity(sources.len());
    for source in sources {
        let Some(faceted) = faceted_select(&source)? else {
            all.push(FacetedStatement { source, facets: 0 });
            continue;
        };
        if !state.takes_many_results {
            let message = "FACET gives several result sets: connect with CLIENT_MULTI_RESULTS, \
                           or send each as a SELECT … GROUP 1 BY …";
            return Err(Error::new(ErrorCode::ManyResults, message));
        }
        let facets = faceted.selects();
        let count = facets.len();
        let texts = std::iter::once((faceted.select, count));
        for (text, facets) in texts.chain(facets.into_iter().map(|text| (text, 0))) {
            let made = split(text.as_bytes(), false, source.mode)?;
            all.extend(made.into_iter().map(|source| FacetedStatement { source, facets }));
        }
    }
    Ok(all)
}

/// The FACETs of a SELECT.
pub(super) fn faceted_select(source: &Source) -> Result<Option<Faceted>> {
    match source.is_word(0, "SELECT") {
        true => faceted(source),
        false => Ok(None),
    }
}
