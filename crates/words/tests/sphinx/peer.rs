//! Another Sphinx server as the engine under test. It shows that the comparison finds no difference between equal
//! engines, and finds one that was put in.

use std::{cell::RefCell, rc::Rc};

use crate::{
    corpus::Corpus,
    engine::{Engine, Found, Make, Options},
    server::Index,
    trial::Sphinx,
};

/// Changes the result of a query.
pub type Change = fn(&str, &mut Found);

/// One index of a second server.
struct Peer {
    sphinx: Rc<RefCell<Sphinx>>,
    number: usize,
    change: Change,
}

impl Engine for Peer {
    fn search(&self, query: &str, options: &Options) -> Result<Found, String> {
        let answer = self.sphinx.borrow_mut().search(self.number, query, options);
        let mut found = answer.map_err(|error| error.to_string())??;
        (self.change)(query, &mut found);
        Ok(found)
    }
}

/// Second servers that change their results.
pub fn make(change: Change) -> Box<Make> {
    Box::new(move |corpora| {
        let index = |corpus: &Rc<Corpus>| Index { corpus: Rc::clone(corpus), shards: 1 };
        let indexes: Vec<Index> = corpora.iter().map(index).collect();
        let sphinx = Rc::new(RefCell::new(Sphinx::start(&indexes)));
        let peer = |number| Peer { sphinx: Rc::clone(&sphinx), number, change };
        (0..indexes.len()).map(|number| Box::new(peer(number)) as Box<dyn Engine>).collect()
    })
}
