//! A paper, and its page.

use std::fmt::Write;
use std::path::Path;

use gristmill_cli::{Failure, print};
use gristmill_os::folder::Folder;
use gristmill_report::messages::tell;

use super::{Answer, Ask, Item};
use crate::compare::machine::MachineFacts;
use crate::results::ResultFile;

/// A paper.
pub struct Paper<R: 'static> {
    /// The name of its subcommand.
    pub name: &'static str,
    /// Authors, title and year.
    pub title: &'static str,
    /// The sources that were read, and the terms and numbers that all items use, in Markdown.
    pub about: &'static str,
    /// All its figures, tables or slides, in order.
    pub items: &'static [Item<R>],
}

impl<R> Paper<R> {
    /// Asks what `ask` asks for, and prints the page; writes it, too, if there is a directory for it.
    pub fn answer(&self, ask: &Ask, experiments: &mut R) -> Result<(), Failure> {
        let chosen = self.chosen(ask.only().as_deref())?;
        if let Some(directory) = &ask.output {
            Folder::make(directory).map_err(|source| Failure::output(directory, source))?;
        }
        let open = |name: &str| -> Result<Option<ResultFile>, Failure> {
            ask.output.as_deref().map(|directory| ResultFile::begin(&directory.join(name))).transpose()
        };
        let to_page = open("page.md")?;
        let machine = MachineFacts::here();
        let mut answers = Vec::new();
        for (done, item) in chosen.iter().enumerate() {
            tell(format_args!("{} of {}: {}, {}", done + 1, chosen.len(), item.label, item.title));
            let answer = (item.ask)(experiments)?;
            for (name, content) in &answer.files {
                open(name)?.map_or(Ok(()), |file| file.publish(content))?;
            }
            answers.push((*item, answer));
        }
        let text = self.markdown(ask, &machine, &answers);
        print(text.trim_end())?;
        to_page.map_or(Ok(()), |file| file.publish(&text))
    }

    /// Returns the items that are asked for.
    fn chosen(&self, only: Option<&str>) -> Result<Vec<&Item<R>>, Failure> {
        let Some(only) = only else { return Ok(self.items.iter().collect()) };
        let chosen: Vec<&Item<R>> = self.items.iter().filter(|item| item.label == only).collect();
        if chosen.is_empty() {
            let labels: Vec<&str> = self.items.iter().map(|item| item.label).collect();
            return Err(Failure::Usage(format!("{} has no {only}; it has {}", self.name, labels.join(", "))));
        }
        Ok(chosen)
    }

    /// Renders the page: the machine, the verdicts at a glance, and a section for each item.
    fn markdown(&self, ask: &Ask, machine: &MachineFacts, answers: &[(&Item<R>, Answer)]) -> String {
        let mut page = format!("# {}\n\n", self.title);
        let quick = if ask.quick { " --quick" } else { "" };
        let rounds = if ask.rounds == 1 { "one round".to_owned() } else { format!("{} rounds", ask.rounds) };
        let _ = writeln!(page, "Made by `gristmill-lab {}{quick}`, {rounds}. {}\n", self.name, self.about);
        page += "| machine | |\n|---|---|\n";
        for (name, value) in &machine.facts {
            let _ = writeln!(page, "| {name} | {value} |");
        }
        page += "\n| | shows | verdict |\n|---|---|---|\n";
        for (item, answer) in answers {
            let _ = writeln!(page, "| {} | {} | {} |", item.label, item.title, answer.verdict.words().0);
        }
        for (item, answer) in answers {
            page += &section(item, answer, ask.output.as_deref());
        }
        page
    }
}

fn section<R>(item: &Item<R>, answer: &Answer, directory: Option<&Path>) -> String {
    let (verdict, why) = answer.verdict.words();
    let mut section = format!("\n## {}{}: {}\n\n", item.label[..1].to_uppercase(), &item.label[1..], item.title);
    let _ = writeln!(section, "**The paper:** {}\n", item.paper);
    if !answer.found.is_empty() {
        let _ = writeln!(section, "**Here:** {}\n", answer.found.trim());
    }
    for (name, _) in answer.files.iter().filter(|(name, _)| directory.is_some() && name.ends_with(".svg")) {
        let _ = writeln!(section, "![{}]({name})\n", item.title);
    }
    let colon = if why.is_empty() { "" } else { ": " };
    let _ = writeln!(section, "**Verdict:** {verdict}{colon}{why}.");
    if !item.agrees_if.is_empty() {
        let _ = writeln!(section, "It agrees if {}.", item.agrees_if);
    }
    section
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::page::Judgement;

    const PAPER: Paper<u32> = Paper {
        name: "example",
        title: "An example",
        about: "A worker is a thread.",
        items: &[
            Item {
                label: "figure 1",
                title: "a picture of nothing",
                paper: "boxes and arrows",
                agrees_if: "",
                ask: |_| Ok(Answer::new("", Judgement::Drawing("ARCHITECTURE.md shows it".into()))),
            },
            Item {
                label: "table 1",
                title: "a number",
                paper: "2",
                agrees_if: "it is 2",
                ask: |number| Ok(Answer::new(format!("{number}"), Judgement::of(*number == 2, || "it is odd".into()))),
            },
        ],
    };

    #[test]
    fn one_item_can_be_asked_for_and_an_unknown_one_is_named_with_those_that_exist() {
        assert_eq!(PAPER.chosen(None).expect("all").len(), 2);
        assert_eq!(PAPER.chosen(Some("table 1")).expect("one")[0].title, "a number");
        let refused = PAPER.chosen(Some("figure 7")).err().expect("no such figure").to_string();
        assert_eq!(refused, "example has no figure 7; it has figure 1, table 1");
    }

    #[test]
    fn a_section_says_what_the_paper_found_what_was_found_here_and_the_verdict() {
        let answer = (PAPER.items[1].ask)(&mut 3).expect("an answer");
        assert_eq!(
            section(&PAPER.items[1], &answer, None),
            "\n## Table 1: a number\n\n**The paper:** 2\n\n**Here:** 3\n\n**Verdict:** does not agree: it is odd.\n\
             It agrees if it is 2.\n"
        );
    }
}
