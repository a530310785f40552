//! A SELECT with FACETs becomes several statements, each with a result set. All read the same
//! snapshot.

use std::sync::Arc;

use datafusion::sql::sqlparser::ast::Query;
use remora_mysql::ErrorCode;

use crate::{
    Error, Result,
    parse::{Faceted, Source, faceted},
    state::SessionState,
};

/// A statement, split from a text.
pub(super) struct FacetedStatement {
    /// The statement to run.
    pub source: Arc<Source>,
    /// The query of one of its FACETs, to run instead.
    pub facet: Option<Query>,
    /// The number of FACETs that follow it.
    pub facets: usize,
}

/// The statements in the order in which they run: a SELECT before its FACETs.
///
/// # Errors
/// 1064 for a malformed FACET, 1312 if the client does not accept several result sets.
pub(super) fn spread(
    state: &SessionState,
    sources: impl Iterator<Item = Arc<Source>>,
) -> Result<Vec<FacetedStatement>> {
    let mut all = Vec::new();
    for source in sources {
        let Some(Faceted { select, facets }) = faceted_select(&source)? else {
            all.push(FacetedStatement { source, facet: None, facets: 0 });
            continue;
        };
        source.refuse_parameters()?;
        if !state.takes_many_results {
            let message = "FACET gives several result sets: connect with CLIENT_MULTI_RESULTS, \
                           or send each as a SELECT … GROUP 1 BY …";
            return Err(Error::new(ErrorCode::ManyResults, message));
        }
        let select = Arc::new(source.within(select));
        all.push(FacetedStatement { source: select, facet: None, facets: facets.len() });
        all.extend(facets.into_iter().map(|facet| FacetedStatement {
            source: Arc::clone(&source),
            facet: Some(facet),
            facets: 0,
        }));
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
