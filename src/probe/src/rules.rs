//! Which words of a form are legal, beyond the values of selectors: the rules of `legal.tsv`.
//!
//! A refused word makes a rule: the bits whose flip makes it legal, and their value, are refused. Where that is too wide, a legal
//! word in it makes an exception the same way. A word is legal when every rule allows it.

use union_gen::family::LegalRow;

/// Words whose bits under `mask` are `value`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Cube {
    /// Bits that are compared.
    pub mask: u128,
    /// Their value.
    pub value: u128,
}

impl Cube {
    fn has(&self, word: u128) -> bool {
        word & self.mask == self.value
    }

    /// The words that agree with `word` under `mask`.
    fn around(word: u128, mask: u128) -> Self {
        Self {
            mask,
            value: word & mask,
        }
    }
}

/// What is refused, and the exceptions: cubes with their verdict, of which the narrowest decides.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rule(pub Vec<(Cube, bool)>);

impl Rule {
    /// Words of a cube are refused.
    pub fn refuse(mask: u128, value: u128) -> Self {
        Self(vec![(Cube { mask, value }, false)])
    }

    fn allows(&self, word: u128) -> bool {
        let matching = self.0.iter().filter(|(c, _)| c.has(word));
        let narrowest = matching.max_by_key(|(c, legal)| (c.mask.count_ones(), !legal));
        narrowest.is_none_or(|r| r.1)
    }
}

/// The rules of a class.
#[derive(Clone, Debug, Default)]
pub struct Rules(pub Vec<Rule>);

impl Rules {
    /// Whether they allow `word`.
    pub fn allow(&self, word: u128) -> bool {
        self.0.iter().all(|r| r.allows(word))
    }

    /// Bits that can have one value only.
    pub fn fixed(&self) -> u128 {
        let alone = |r: &Rule| match r.0[..] {
            [(c, false)] if c.mask.count_ones() == 1 => c.mask,
            _ => 0,
        };
        self.0.iter().fold(0, |m, r| m | alone(r))
    }

    /// Drops the rules that fix one bit of `bits` each.
    pub fn free(&mut self, bits: u128) {
        let fixes = |r: &Rule| matches!(r.0[..], [(c, false)] if c.mask.count_ones() == 1 && c.mask & bits != 0);
        self.0.retain(|r| !fixes(r));
    }

    /// Cubes in all rules.
    pub fn rows(&self) -> usize {
        self.0.iter().map(|r| r.0.len()).sum()
    }

    /// Adds a row of `legal.tsv`; the rows of a rule come together.
    pub fn add_row(&mut self, row: &LegalRow) {
        let number = usize::from(row.rule);
        if self.0.len() <= number {
            self.0.resize(number + 1, Rule(Vec::new()));
        }
        let cube = Cube {
            mask: row.mask,
            value: row.value,
        };
        self.0[number].0.push((cube, row.legal));
    }

    /// Adds what `word` teaches, of which `mask` are the bits whose flip changes the verdict. Returns the new cubes.
    pub fn learn(&mut self, word: u128, legal: bool, mask: u128) -> Vec<Cube> {
        if !legal {
            self.0.push(Rule::refuse(mask, word & mask));
            return vec![Cube::around(word, mask)];
        }
        let mut out = Vec::new();
        for rule in self.0.iter_mut().filter(|r| !r.allows(word)) {
            let refusing = rule.0.iter().filter(|(c, legal)| !legal && c.has(word));
            let cube = Cube::around(word, refusing.fold(mask, |m, (c, _)| m | c.mask));
            if !rule.0.contains(&(cube, false)) {
                rule.0.push((cube, true));
                out.push(cube);
            }
        }
        out
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exceptions_belong_to_the_rule_that_they_break() {
        let mut rules = Rules::default();
        rules.learn(0b0001, false, 0b0001); // A odd
        rules.learn(0b0100, false, 0b0100); // B odd
        rules.learn(0b0011, true, 0b0010); // but A = 3
        assert!(rules.allow(0b0011) && !rules.allow(0b0001));
        assert!(!rules.allow(0b0111), "the exception for A says nothing about B");
        assert_eq!(rules.0.len(), 2);
    }
}
