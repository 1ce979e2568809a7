//! Depth of a function: how many blocks of control flow and closures are nested in it.

/// Words that begin control flow.
const CONTROL: &[&str] = &["if", "else", "match", "while", "for", "loop"];

/// End of the head of a closure. The arrow of an arm of `match` counts as the same.
const BODY: char = '|';

/// Code between two brackets, as far as it is read.
#[derive(Default)]
struct Level {
    /// True if a word of control flow waits for its block.
    is_head: bool,
    /// True within a pattern, whose braces are no block: from `let` to `=`, and from `for` to `in`.
    is_pattern: bool,
    /// True if the brackets are the braces of a block that counts.
    is_block: bool,
}

/// Returns the depth of a function. `code` has blanks in place of comments and texts.
pub(super) fn of(code: &str) -> usize {
    let (mut levels, mut deepest) = (vec![Level::default()], 0);
    let (mut word, mut before) = (String::new(), ' ');
    for (at, letter) in code.char_indices() {
        if letter.is_alphanumeric() || letter == '_' {
            word.push(letter);
            before = letter;
            continue;
        }
        let level = levels.last_mut().expect("the code closes only what it opens");
        level.read(&std::mem::take(&mut word));
        match letter {
            '(' | '[' => levels.push(Level::default()),
            ')' | ']' | '}' => _ = levels.pop(),
            '{' => {
                let is_block = level.opens_block(before);
                levels.push(Level { is_block, ..Level::default() });
                deepest = deepest.max(levels.iter().filter(|level| level.is_block).count());
            }
            '=' if before != '.' && !code[at..].starts_with("=>") => level.is_pattern = false,
            ',' | ';' => *level = Level { is_block: level.is_block, ..Level::default() },
            // The arrow ends the pattern and the guard of an arm.
            '>' if before == '=' => level.is_head = false,
            _ => {}
        }
        before = match letter {
            '>' if before == '=' => BODY,
            _ if letter.is_whitespace() => before,
            _ => letter,
        };
    }
    deepest
}

impl Level {
    fn read(&mut self, word: &str) {
        self.is_head |= CONTROL.contains(&word);
        self.is_pattern = matches!(word, "let" | "for") || self.is_pattern && word != "in";
    }

    /// True if a brace after the letter `before` opens a block of control flow, of an arm or of a closure.
    fn opens_block(&mut self, before: char) -> bool {
        let is_block = self.is_head && !self.is_pattern;
        self.is_head &= !is_block;
        is_block || before == BODY
    }
}
