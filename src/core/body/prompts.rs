//! Prompts as text, token ids, media or embeddings, one or many.

use super::BadBody;
use super::backend::Backend;
use super::escape::unescape;
use super::scan::{MAX_DEPTH, too_deep};
use super::walk::Walk;

impl Walk<'_> {
    /// A prompt, or an array of prompts. Numbers side by side are one prompt of token ids.
    pub(super) fn prompts(&mut self, key: &'static str) -> Result<(), BadBody> {
        self.prompts.1 = key;
        if self.scanner.token() != Some(b'[') {
            return self.one(self.depth());
        }
        self.scanner.take();
        let before = self.prompts.0;
        let (mut first, mut ids) = (true, 0);
        while self.scanner.item(first)? {
            first = false;
            match self.scanner.token() {
                Some(b'-' | b'0'..=b'9') => {
                    self.scanner.number()?;
                    ids += 1;
                }
                Some(b'[') => {
                    self.prompts.0 += 1;
                    self.ids(self.depth() + 2)?;
                }
                _ => self.one(self.depth() + 1)?,
            }
        }
        self.prompts.0 += u64::from(ids > 0);
        // There strings beside ids are pieces of one prompt; elsewhere they are no prompt at all.
        if ids > 0 && self.backend == Backend::LlamaCpp {
            self.prompts.0 = before + 1;
        }
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

    /// A prompt given as rows of numbers, one a token, or an array of such prompts.
    pub(super) fn rows(&mut self, key: &'static str) -> Result<(), BadBody> {
        self.prompts.1 = key;
        if self.scanner.token() != Some(b'[') {
            return self.text(self.depth());
        }
        self.scanner.take();
        let (mut first, mut rows) = (true, 0);
        while self.scanner.item(first)? {
            first = false;
            if self.scanner.token() != Some(b'[') {
                self.text(self.depth() + 1)?;
                continue;
            }
            // A peek only: the row, or the rows, are checked behind it.
            let mut inside = self.scanner.clone();
            inside.take();
            if inside.token() == Some(b'[') {
                self.prompts.0 += 1;
                self.ids(self.depth() + 2)?;
            } else {
                self.scanner.skip(self.depth() + 1)?;
                rows += 1;
            }
        }
        self.prompts.0 += u64::from(rows > 0);
        self.prompt.token_ids += rows;
        Ok(())
    }

    /// A prompt that is no array: text, or one token id; `null` is none.
    fn one(&mut self, depth: usize) -> Result<(), BadBody> {
        let token = self.scanner.token();
        self.prompts.0 += u64::from(token != Some(b'n'));
        if let Some(b'-' | b'0'..=b'9') = token {
            self.scanner.number()?;
            self.prompt.token_ids += 1;
            return Ok(());
        }
        if token == Some(b'{') {
            return self.prompt_object(depth);
        }
        self.text(depth)
    }

    /// llama.cpp's prompt with media in it: `{"prompt_string": …, "multimodal_data": […]}`; all else in it is text.
    fn prompt_object(&mut self, depth: usize) -> Result<(), BadBody> {
        if depth >= MAX_DEPTH {
            return Err(too_deep(self.scanner.at()));
        }
        self.scanner.take();
        let mut first = true;
        while let Some(key) = self.scanner.member(first)? {
            first = false;
            let spelled = self.scanner.bytes().get(key.inside.clone()).unwrap_or_default();
            if unescape(spelled).eq(*b"multimodal_data") {
                self.medias_at(depth + 1)?;
                continue;
            }
            self.text(depth + 1)?;
        }
        Ok(())
    }

    /// One media, or an array of such, or an array of such arrays; `null` is none.
    pub(super) fn medias(&mut self) -> Result<(), BadBody> {
        self.medias_at(self.depth())
    }

    fn medias_at(&mut self, depth: usize) -> Result<(), BadBody> {
        if self.scanner.token() != Some(b'[') {
            return self.medium(depth);
        }
        if depth >= MAX_DEPTH {
            return Err(too_deep(self.scanner.at()));
        }
        self.scanner.take();
        let mut first = true;
        while self.scanner.item(first)? {
            first = false;
            if self.scanner.token() != Some(b'[') {
                self.medium(depth + 1)?;
                continue;
            }
            if depth + 1 >= MAX_DEPTH {
                return Err(too_deep(self.scanner.at()));
            }
            self.scanner.take();
            let mut first = true;
            while self.scanner.item(first)? {
                first = false;
                self.medium(depth + 2)?;
            }
        }
        Ok(())
    }

    fn medium(&mut self, depth: usize) -> Result<(), BadBody> {
        self.prompt.media += u64::from(self.scanner.token() != Some(b'n'));
        self.scanner.skip(depth)?;
        Ok(())
    }

    /// Token ids, or rows of numbers, that are no prompt of their own.
    pub(super) fn token_ids(&mut self) -> Result<(), BadBody> {
        if self.scanner.token() == Some(b'[') { self.ids(self.depth() + 1) } else { self.text(self.depth()) }
    }

    /// The items of one prompt given as an array; `depth` as for what stands in it.
    fn ids(&mut self, depth: usize) -> Result<(), BadBody> {
        self.scanner.take();
        let mut first = true;
        while self.scanner.item(first)? {
            first = false;
            match self.scanner.token() {
                Some(b'-' | b'0'..=b'9' | b'[') => {
                    self.scanner.skip(depth)?;
                    self.prompt.token_ids += 1;
                }
                _ => self.text(depth)?,
            }
        }
        Ok(())
    }

    fn embed(&mut self, depth: usize) -> Result<(), BadBody> {
        let some = u64::from(self.scanner.token() != Some(b'n'));
        self.prompts.0 += some;
        self.prompt.media += some;
        self.scanner.skip(depth)?;
        Ok(())
    }
}
