//! Parses a join's shape from the pieces of a statement, by recursive descent. The grammar is in [`super`].

use remora_mysql::LexMode;

use super::{Chain, Items, JoinCondition, JoinPredicate, LiteralOffset, Named, Shape};
use crate::execute::shapes::{
    lift::Piece,
    parse::Parser,
    shape::{ColumnName, Comparison, Group},
};

/// The deepest nesting of parentheses and subqueries.
const MAX_DEPTH: usize = 8;
/// The most tables of a FROM.
const MAX_TABLES: usize = 8;

/// The shape of a statement, if it is a join of this form.
pub(in crate::execute::shapes) fn shape(
    text: &[u8],
    mode: LexMode,
    pieces: &[Piece],
) -> Option<Shape> {
    let mut parser = Parser::new(text, mode, pieces);
    if !parser.word("SELECT") {
        return None;
    }
    let items = parser.joined_items()?;
    if !parser.word("FROM") {
        return None;
    }
    let chain = match (&items, parser.is("(")) {
        (Items::Count(_), true) => parser.derived()?,
        (_, true) => return None,
        (_, false) => parser.chain(0)?,
    };
    parser.at_end().then_some(Shape { items, chain })
}

/// One side of a comparison.
enum Operand {
    Literal(Group),
    Column(ColumnName, Option<LiteralOffset>),
}

impl Parser<'_> {
    fn joined_items(&mut self) -> Option<Items> {
        let start = self.place();
        if self.is_call("COUNT") {
            self.skip(2);
            if self.mark("*") {
                self.expect(")")?;
                let written = self.written(start)?;
                return Some(Items::Count(self.alias()?.unwrap_or(written)));
            }
            if !self.word("DISTINCT") {
                return None;
            }
            let enclosed = self.mark("(");
            let column = self.column()?;
            if enclosed {
                self.expect(")")?;
            }
            self.expect(")")?;
            let written = self.written(start)?;
            return Some(Items::CountDistinct(column, self.alias()?.unwrap_or(written)));
        }
        let mut columns = Vec::new();
        loop {
            let column = self.column()?;
            let name = self.alias()?.unwrap_or_else(|| column.name.clone());
            columns.push((column, name));
            if !self.mark(",") {
                return Some(Items::Columns(columns));
            }
        }
    }

    /// `( SELECT columns FROM … ) alias`, whose rows are only counted.
    fn derived(&mut self) -> Option<Chain> {
        self.expect("(")?;
        if !self.word("SELECT") {
            return None;
        }
        let Items::Columns(columns) = self.joined_items()? else { return None };
        // Duplicate column names are an error, which the general path reports.
        let mut names: Vec<String> = columns.iter().map(|(_, name)| name.to_lowercase()).collect();
        names.sort_unstable();
        if names.windows(2).any(|pair| pair.first() == pair.last()) || !self.word("FROM") {
            return None;
        }
        let mut chain = self.chain(1)?;
        self.expect(")")?;
        self.alias()??;
        chain.selected = columns.into_iter().map(|(column, _)| column).collect();
        Some(chain)
    }

    fn chain(&mut self, depth: usize) -> Option<Chain> {
        if depth > MAX_DEPTH {
            return None;
        }
        let mut chain = Chain { tables: vec![self.named()?], ..Chain::default() };
        // The first table after the last comma.
        let mut first = 0;
        loop {
            let listed = self.mark(",");
            let joins = listed || {
                let kind = self.word("INNER") || self.word("CROSS");
                let joins = self.word("JOIN");
                if kind && !joins {
                    return None;
                }
                joins
            };
            if !joins {
                break;
            }
            if listed {
                first = chain.tables.len();
            }
            chain.tables.push(self.named()?);
            if !listed && self.word("ON") {
                self.said(depth, first, &mut chain)?;
            }
        }
        if self.word("WHERE") {
            self.said(depth, 0, &mut chain)?;
        }
        (chain.tables.len() <= MAX_TABLES).then_some(chain)
    }

    /// Conditions that may name the tables from number `first` on.
    fn said(&mut self, depth: usize, first: usize, chain: &mut Chain) -> Option<()> {
        let mut facts = Vec::new();
        self.facts(depth, &mut facts)?;
        let sees = first..chain.tables.len();
        chain
            .facts
            .extend(facts.into_iter().map(|fact| JoinCondition { fact, sees: sees.clone() }));
        Some(())
    }

    fn named(&mut self) -> Option<Named> {
        let (database, table, alias) = self.table()?;
        Some(Named { database, table, alias })
    }

    fn facts(&mut self, depth: usize, facts: &mut Vec<JoinPredicate>) -> Option<()> {
        if depth > MAX_DEPTH {
            return None;
        }
        loop {
            if self.mark("(") {
                self.facts(depth + 1, facts)?;
                self.expect(")")?;
            } else {
                self.fact(depth, facts)?;
            }
            if !self.word("AND") && !self.mark("&&") {
                return Some(());
            }
        }
    }

    fn fact(&mut self, depth: usize, facts: &mut Vec<JoinPredicate>) -> Option<()> {
        let left = self.operand()?;
        if let Some(comparison) = self.operator() {
            facts.push(match (left, self.operand()?) {
                (Operand::Column(left, None), Operand::Literal(group)) => {
                    JoinPredicate::Constant(left, comparison, group)
                }
                (Operand::Literal(group), Operand::Column(right, None)) => {
                    JoinPredicate::Constant(right, comparison.mirrored(), group)
                }
                (Operand::Column(left, None), Operand::Column(right, added)) => {
                    JoinPredicate::Columns(left, comparison, right, added)
                }
                (Operand::Column(left, added), Operand::Column(right, None)) => {
                    JoinPredicate::Columns(right, comparison.mirrored(), left, added)
                }
                _ => return None,
            });
            return Some(());
        }
        let Operand::Column(column, None) = left else { return None };
        if self.word("BETWEEN") {
            let low = self.literal()?;
            if !self.word("AND") {
                return None;
            }
            let high = self.literal()?;
            facts.push(JoinPredicate::Constant(column.clone(), Comparison::GreaterOrEqual, low));
            facts.push(JoinPredicate::Constant(column, Comparison::LessOrEqual, high));
            return Some(());
        }
        if !self.word("IN") {
            return None;
        }
        if let Some(list) = self.list(1) {
            facts.push(JoinPredicate::In(column, list));
            return Some(());
        }
        // The attempt to read a list has consumed the parenthesis.
        if !self.word("SELECT") {
            return None;
        }
        let Items::Columns(selected) = self.joined_items()? else { return None };
        let [(selected, _)] = <[_; 1]>::try_from(selected).ok()?;
        if !self.word("FROM") {
            return None;
        }
        let chain = self.chain(depth + 1)?;
        self.expect(")")?;
        facts.push(JoinPredicate::InChain(column, selected, chain));
        Some(())
    }

    fn operand(&mut self) -> Option<Operand> {
        if let Some(group) = self.literal() {
            return Some(Operand::Literal(group));
        }
        let column = self.column()?;
        let subtracted = self.is("-");
        if !self.mark("-") && !self.mark("+") {
            return Some(Operand::Column(column, None));
        }
        let added = LiteralOffset { subtracted, literal: self.literal()? };
        Some(Operand::Column(column, Some(added)))
    }
}
