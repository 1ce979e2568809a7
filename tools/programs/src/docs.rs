//! Code blocks of the docs. The info string of a block of commands names the test that runs it, or the reason why no
//! test does: `sh run=file::test`, or `sh not-run="it needs a cloud"`.

/// Code block of a document.
#[derive(Debug, PartialEq, Eq)]
pub struct Block<'a> {
    /// Line of the opening fence, from 1.
    pub line: usize,
    /// First word of the info string.
    pub language: &'a str,
    pub runner: Runner<'a>,
    /// Lines between the fences, without the indentation of the opening fence.
    pub text: String,
}

/// Rest of the info string.
#[derive(Debug, PartialEq, Eq)]
pub enum Runner<'a> {
    /// Test that runs the block, as `file::test`.
    Test(&'a str),
    /// Reason why no test runs the block.
    NotRun(&'a str),
    /// Neither of the two; often empty.
    Other(&'a str),
}

impl<'a> Runner<'a> {
    fn of(info: &'a str) -> Self {
        let reason = || info.strip_prefix("not-run=\"")?.strip_suffix('"');
        match info.strip_prefix("run=") {
            Some(test) => Self::Test(test),
            None => reason().map_or(Self::Other(info), Self::NotRun),
        }
    }
}

/// Returns the code blocks of a document in Markdown, in its order.
#[must_use]
pub fn blocks(document: &str) -> Vec<Block<'_>> {
    let mut blocks = Vec::new();
    let mut lines = document.lines().enumerate();
    while let Some((number, line)) = lines.next() {
        let Some((indentation, info)) = line.split_once("```").filter(|(before, _)| before.trim().is_empty()) else {
            continue;
        };
        let (language, rest) = info.split_once(' ').unwrap_or((info, ""));
        let inside = lines.by_ref().map(|(_, line)| line).take_while(|line| line.trim() != "```");
        let inside = inside.map(|line| line.strip_prefix(indentation).unwrap_or(line));
        let text = inside.flat_map(|line| [line, "\n"]).collect();
        blocks.push(Block { line: number + 1, language, runner: Runner::of(rest), text });
    }
    blocks
}

/// Returns the texts of the blocks that a test (`file::test`) runs, in the order of the document.
pub fn run_by(document: &str, test: &str, language: &str) -> impl Iterator<Item = String> {
    let is_wanted = move |block: &Block<'_>| block.runner == Runner::Test(test) && block.language == language;
    blocks(document).into_iter().filter(is_wanted).map(|block| block.text)
}

#[cfg(test)]
mod tests {
    use super::*;

    const DOCUMENT: &str = "Run `x`:\n\n```sh run=a::b\nx\n\ny\n```\n- Then:\n\n  ```console not-run=\"it needs y\"\n  $ y\n    \
                            z\n  ```\n\n```yaml\na: 1\n```\n```sh not-run=why\n```\n";

    #[test]
    fn each_block_has_its_line_language_runner_and_text() {
        let block = |line, language, runner, text: &str| Block { line, language, runner, text: text.to_owned() };
        let expected = [
            block(3, "sh", Runner::Test("a::b"), "x\n\ny\n"),
            block(10, "console", Runner::NotRun("it needs y"), "$ y\n  z\n"),
            block(15, "yaml", Runner::Other(""), "a: 1\n"),
            block(18, "sh", Runner::Other("not-run=why"), ""),
        ];
        assert_eq!(blocks(DOCUMENT), expected);
    }

    #[test]
    fn a_test_gets_the_blocks_of_its_name_and_language() {
        let texts = |test, language| run_by(DOCUMENT, test, language).collect::<Vec<_>>();
        assert_eq!(texts("a::b", "sh"), ["x\n\ny\n"]);
        assert!(texts("a::b", "console").is_empty() && texts("b", "sh").is_empty());
    }
}
