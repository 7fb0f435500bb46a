//! The completions dialect's `prompt` and `prompt_embeds`: how many prompts, of text or token ids.

use super::BadBody;
use super::walk::Walk;

impl Walk<'_> {
    /// A prompt, or an array of prompts. Numbers side by side are one prompt of token ids.
    pub(super) fn prompts(&mut self) -> Result<(), BadBody> {
        if self.scanner.token() != Some(b'[') {
            return self.one(self.depth());
        }
        self.scanner.take();
        let (mut first, mut ids) = (true, 0);
        while self.scanner.item(first)? {
            first = false;
            match self.scanner.token() {
                Some(b'-' | b'0'..=b'9') => {
                    self.scanner.number()?;
                    ids += 1;
                }
                Some(b'[') => {
                    self.prompts += 1;
                    self.ids()?;
                }
                _ => self.one(self.depth() + 1)?,
            }
        }
        self.prompts += u64::from(ids > 0);
        self.prompt.token_ids += ids;
        Ok(())
    }

    /// Embeddings: whatever stands for one is a prompt and a media.
    pub(super) fn embeds(&mut self) -> Result<(), BadBody> {
        if self.scanner.token() != Some(b'[') {
            return self.embed(self.depth());
        }
        self.scanner.take();
        let mut first = true;
        while self.scanner.item(first)? {
            first = false;
            self.embed(self.depth() + 1)?;
        }
        Ok(())
    }

    /// A prompt that is no array: text, or one token id; `null` is none.
    fn one(&mut self, depth: usize) -> Result<(), BadBody> {
        let token = self.scanner.token();
        self.prompts += u64::from(token != Some(b'n'));
        if let Some(b'-' | b'0'..=b'9') = token {
            self.scanner.number()?;
            self.prompt.token_ids += 1;
            return Ok(());
        }
        self.text(depth)
    }

    /// The items of one prompt given as an array.
    fn ids(&mut self) -> Result<(), BadBody> {
        self.scanner.take();
        let mut first = true;
        while self.scanner.item(first)? {
            first = false;
            match self.scanner.token() {
                Some(b'-' | b'0'..=b'9') => {
                    self.scanner.number()?;
                    self.prompt.token_ids += 1;
                }
                _ => self.text(self.depth() + 2)?,
            }
        }
        Ok(())
    }

    fn embed(&mut self, depth: usize) -> Result<(), BadBody> {
        let some = u64::from(self.scanner.token() != Some(b'n'));
        self.prompts += some;
        self.prompt.media += some;
        self.scanner.value(depth)?;
        Ok(())
    }
}
