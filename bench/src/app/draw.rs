//! The literals of statements: values that exist in the shop, drawn anew for each run.

use std::collections::BTreeMap;

use anyhow::{Context, Result, bail};
use mysql::Value;

use super::{
    calendar::{DAYS, MONTHS, day, moment, month},
    rows::{
        CATEGORIES, CITIES, COLORS, COUNTRIES, FORUMS, STATUSES, Shop, WORDS, coupon, name,
        rare_word, reference, sku, slug, token,
    },
    skewed_rows,
};
use crate::random::SplitMix64;

/// A stream of literals.
pub struct LiteralGenerator<'s> {
    shop: &'s Shop,
    random: SplitMix64,
    /// Numbers already drawn for the current statement: a repeated marker gets the same one.
    drawn: BTreeMap<&'static str, u64>,
}

impl<'s> LiteralGenerator<'s> {
    /// The literals for a seed.
    pub fn new(shop: &'s Shop, seed: u64) -> Self {
        Self { shop, random: SplitMix64::new(seed), drawn: BTreeMap::new() }
    }

    /// Begins a statement.
    pub fn begin(&mut self) {
        self.drawn.clear();
    }

    /// The literals of a marker: one, or as many as the number after its colon says.
    pub fn literals(&mut self, marker: &str) -> Result<Vec<Value>> {
        let Some((name, count)) = marker.split_once(':') else {
            return Ok(vec![self.literal(marker)?]);
        };
        let most = match name {
            "users" => self.shop.users,
            "orders" => self.shop.orders,
            _ => bail!("there is no list of {name}"),
        };
        let count: u64 = count.parse().with_context(|| format!("how many is {marker}?"))?;
        Ok((0..count).map(|_| number(1 + self.random.next() % most)).collect())
    }

    fn literal(&mut self, marker: &str) -> Result<Value> {
        if let Some(value) = skewed_rows::literal(marker, &mut |name, most| self.below(name, most))
        {
            return Ok(value);
        }
        let shop = self.shop;
        Ok(match marker {
            "user" => number(self.key("user", shop.users)),
            "email" => text(shop.email(self.key("user", shop.users))),
            "token" => text(token(self.key("user", shop.users))),
            "name" => text(name(self.key("other user", shop.users))),
            "product" => number(self.key("product", shop.products)),
            "sku" => text(sku(self.key("product", shop.products))),
            "order" => number(self.key("order", shop.orders)),
            "moment" => text(moment(shop.order_second(self.key("order", shop.orders)))),
            "reference" => text(self.reference()),
            "category" => number(11 + self.below("category", CATEGORIES - 10)),
            "slug" => text(slug(11 + self.below("category", CATEGORIES - 10))),
            "forum" => number(self.key("forum", FORUMS)),
            "topic" => number(self.key("topic", shop.topics)),
            "coupon" => text(coupon(self.below("coupon", 500))),
            "amount" => number(500 + self.below("amount", 700)),
            "price" => number(2 + self.below("price", 240)),
            "offset" => number(shop.orders / 5 + self.below("offset", 1_000)),
            "page" => number(20 * self.below("page", 100)),
            "day" => text(day(self.below("day", DAYS - 8))),
            "next_day" => text(day(self.below("day", DAYS - 8) + 1)),
            "next_week" => text(day(self.below("day", DAYS - 8) + 7)),
            "month" => text(month(self.below("month", MONTHS))),
            "next_month" => text(month(self.below("month", MONTHS) + 1)),
            _ => return self.word(marker),
        })
    }

    /// A literal that is a word or contains one.
    fn word(&mut self, marker: &str) -> Result<Value> {
        let list = match marker {
            "status" => &STATUSES[..],
            "country" => &COUNTRIES,
            "city" => &CITIES,
            "color" => &COLORS,
            "holds" | "word" => &WORDS,
            _ => &[],
        };
        if !list.is_empty() {
            let word = list[self.random.below(list.len())];
            return Ok(text(if marker == "holds" { format!("%{word}%") } else { word.to_owned() }));
        }
        let name = name(self.key("other user", self.shop.users)).to_lowercase();
        let (first, rest) = name.split_once(' ').context("a name of one word")?;
        let family = rest.split(' ').next().unwrap_or_default();
        Ok(text(match marker {
            "coupon_prefix" => format!("{:.3}%", coupon(self.below("coupon", 500))),
            "rare" => rare_word(self.below("rare", 500)),
            "word_and_rare" => {
                let word = WORDS[self.random.below(WORDS.len())];
                format!("+{word} +{}", rare_word(self.below("rare", 500)))
            }
            "holds_rare" => format!("%{}%", rare_word(self.below("rare", 500))),
            "name_prefix" => format!("{first} {family:.2}%"),
            "email_prefix" => format!("{first}.{family:.2}%"),
            "holds_name" => format!("%{:.3} {family:.4}%", &first[first.len().saturating_sub(3)..]),
            _ => bail!("nothing is called {marker}"),
        }))
    }

    /// The number for a name, drawn at its first use in the statement.
    fn below(&mut self, name: &'static str, most: u64) -> u64 {
        let random = &mut self.random;
        *self.drawn.entry(name).or_insert_with(|| random.next() % most)
    }

    fn key(&mut self, name: &'static str, most: u64) -> u64 {
        1 + self.below(name, most)
    }

    /// The payment reference of an order, which may have no payment.
    fn reference(&mut self) -> String {
        reference(self.key("order", self.shop.orders))
    }
}

fn number(number: u64) -> Value {
    Value::Int(i64::try_from(number).unwrap_or(i64::MAX))
}

fn text(text: String) -> Value {
    Value::Bytes(text.into_bytes())
}
