//! Tokens of a label selector.

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Token {
    Word(String),
    Not,
    Equal,
    NotEqual,
    Above,
    Below,
    Open,
    Close,
    Comma,
    End,
}

impl Token {
    pub(super) fn text(&self) -> &str {
        match self {
            Self::Word(word) => word,
            Self::Not => "!",
            Self::Equal => "=",
            Self::NotEqual => "!=",
            Self::Above => ">",
            Self::Below => "<",
            Self::Open => "(",
            Self::Close => ")",
            Self::Comma => ",",
            Self::End => "",
        }
    }
}

/// Iterator over the tokens of a selector.
pub(super) struct Tokens {
    letters: Vec<char>,
    at: usize,
}

const SIGNS: &str = "=!(),<>";

impl Tokens {
    pub(super) fn of(text: &str) -> Self {
        Self { letters: text.chars().collect(), at: 0 }
    }

    pub(super) fn peek(&self) -> Token {
        self.scan().0
    }

    pub(super) fn next(&mut self) -> Token {
        let (token, at) = self.scan();
        self.at = at;
        token
    }

    /// Returns the next token, and the position in the text after this token.
    fn scan(&self) -> (Token, usize) {
        let rest = &self.letters[self.at..];
        let blank = rest.iter().take_while(|letter| letter.is_whitespace()).count();
        let begin = self.at + blank;
        let Some(first) = self.letters.get(begin) else {
            return (Token::End, begin);
        };
        let second_is = |sign| self.letters.get(begin + 1) == Some(&sign);
        match first {
            '=' if second_is('=') => (Token::Equal, begin + 2),
            '=' => (Token::Equal, begin + 1),
            '!' if second_is('=') => (Token::NotEqual, begin + 2),
            '!' => (Token::Not, begin + 1),
            '>' => (Token::Above, begin + 1),
            '<' => (Token::Below, begin + 1),
            '(' => (Token::Open, begin + 1),
            ')' => (Token::Close, begin + 1),
            ',' => (Token::Comma, begin + 1),
            _ => {
                let letters = self.letters[begin..].iter();
                let word: String =
                    letters.take_while(|letter| !letter.is_whitespace() && !SIGNS.contains(**letter)).collect();
                let end = begin + word.chars().count();
                (Token::Word(word), end)
            }
        }
    }
}
