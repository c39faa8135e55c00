//! Mail between executions and from other processes: exactly once.

use super::world::{World, circle};
use super::{StoreSite, answered, commit, everything, pages, reader, written};
use crate::commit::{Applied, Letter, Mail, MailId, Write};
use crate::store::{Reader, Store, StoredMail};
use serde_json::json;
use std::sync::Arc;
use windlass_kernel::{Cancel, Create, ExecutionId, Input, Millis};

fn cancel(to: u128, answered: bool) -> Mail {
    let cancel = Cancel { by: "me".into(), reason: "enough".into(), ..Cancel::default() };
    Mail { to: ExecutionId(to), letter: Letter::Input(Input::Cancel(cancel)), answered, at: Millis(3) }
}

fn accepted(store: &mut impl Store, mail: Mail) -> MailId {
    match answered(store, Write::Accept(mail)) {
        Applied::Accepted(id) => id,
        other => panic!("mail was answered {other:?}"),
    }
}

fn inbox(store: &impl Store) -> Vec<StoredMail> {
    let mut reader = reader(store);
    pages(2, |after: Option<&StoredMail>, limit| {
        reader.inbox(after.map(|mail| mail.id), limit).expect("mail")
    })
}

fn numbers(store: &impl Store) -> Vec<MailId> {
    inbox(store).iter().map(|mail| mail.id).collect()
}

fn settle(mail: MailId, refused: Option<&str>) -> Write {
    Write::Settle { mail, refused: refused.map(str::to_owned) }
}

pub fn mail_is_consumed_exactly_once<P: StoreSite>(site: &P) {
    let mut store = site.open();
    let (mut world, created) = World::create(&circle(), 1);
    written(&mut store, &[commit(created)]);
    let mail = [accepted(&mut store, cancel(1, false)), accepted(&mut store, cancel(1, false))];
    assert_eq!(numbers(&store), mail);
    let mut first = world.done(json!(1));
    first.consumed = vec![mail[0]];
    written(&mut store, &[commit(first)]);
    assert_eq!(numbers(&store), mail[1..]);
    let before = everything(&mut reader(&store), world.id());
    let mut again = world.clone().done(json!(2));
    again.consumed = vec![mail[1], mail[0]];
    assert_eq!(answered(&mut store, commit(again)), Applied::Duplicate);
    assert_eq!(everything(&mut reader(&store), world.id()), before, "not even the other mail is gone");
    let never = MailId(mail[1].0 + 1);
    let mut unknown = world.done(json!(2));
    unknown.consumed = vec![never];
    assert_eq!(answered(&mut store, commit(unknown)), Applied::Duplicate);
}

pub fn mail_comes_with_its_commit<P: StoreSite>(site: &P) {
    let mut store = site.open();
    let (world, mut created) = World::create(&circle(), 1);
    let create = Box::new(Create::new(ExecutionId(9), json!({ "float": 0.1 })));
    let (tenant, options) = (crate::Tenant::new("tnt_1"), Arc::default());
    let start = Letter::Start { definition: Arc::new(json!({ "name": "child" })), create, tenant, options };
    let start = Mail { to: ExecutionId(9), letter: start, answered: false, at: world.now };
    created.mail = vec![start.clone(), cancel(9, true)];
    written(&mut store, &[commit(created.clone())]);
    let found = inbox(&store);
    let received: Vec<_> = found.iter().map(|mail| (mail.to, mail.letter.clone(), mail.answered)).collect();
    let sent = [start, cancel(9, true)].map(|mail| (mail.to, mail.letter, mail.answered));
    assert_eq!(received, sent);
    created.mail.push(cancel(9, false));
    assert_eq!(answered(&mut store, commit(created)), Applied::Duplicate);
    assert_eq!(inbox(&store), found, "a refused commit sends nothing");
}

pub fn an_answer_waits_until_it_is_fetched<P: StoreSite>(site: &P) {
    let mut store = site.open();
    let (mut world, created) = World::create(&circle(), 1);
    written(&mut store, &[commit(created)]);
    let [one, two, three] = [1, 1, 1].map(|to| accepted(&mut store, cancel(to, true)));
    assert_eq!(reader(&store).answer(one), Ok(None));
    let mut done = world.done(json!(1));
    done.consumed = vec![one];
    written(&mut store, &[commit(done), settle(two, Some("it has ended")), settle(three, None)]);
    assert_eq!(reader(&store).answer(one), Ok(Some(Ok(()))));
    assert_eq!(reader(&store).answer(two), Ok(Some(Err("it has ended".to_owned()))));
    assert_eq!(reader(&store).answer(three), Ok(Some(Ok(()))));
    assert!(inbox(&store).is_empty(), "it is not given again");
    drop(store);
    let mut store = site.open();
    assert_eq!(reader(&store).answer(two), Ok(Some(Err("it has ended".to_owned()))));
    // Decided is decided: neither a commit nor another answer may take it again.
    let mut again = world.done(json!(2));
    again.consumed = vec![one];
    assert_eq!(answered(&mut store, commit(again)), Applied::Duplicate);
    assert_eq!(answered(&mut store, settle(one, Some("no"))), Applied::Duplicate);
    assert_eq!(reader(&store).answer(one), Ok(Some(Ok(()))));
    let fetched = Write::Fetched { mail: one };
    assert_eq!(answered(&mut store, fetched.clone()), Applied::Done);
    assert_eq!(answered(&mut store, fetched), Applied::Duplicate);
    assert!(reader(&store).answer(one).is_err(), "its sender no longer waits");
    let open = accepted(&mut store, cancel(1, true));
    assert_eq!(answered(&mut store, Write::Fetched { mail: open }), Applied::Duplicate, "there is no answer");
    assert_eq!(numbers(&store), [open]);
}

pub fn settled_mail_is_not_given_again<P: StoreSite>(site: &P) {
    let mut store = site.open();
    let mail = [false, true, false].map(|waits| accepted(&mut store, cancel(4, waits)));
    assert_eq!(numbers(&store), mail);
    assert_eq!(answered(&mut store, settle(mail[0], Some("no such execution"))), Applied::Done);
    assert_eq!(answered(&mut store, settle(mail[0], None)), Applied::Duplicate);
    assert_eq!(numbers(&store), mail[1..]);
    assert_eq!(answered(&mut store, settle(mail[1], None)), Applied::Done);
    assert_eq!(numbers(&store), mail[2..]);
}

pub fn numbers_of_mail_are_never_used_twice<P: StoreSite>(site: &P) {
    let mut store = site.open();
    let mut seen = Vec::new();
    for _ in 0..3 {
        let mail = accepted(&mut store, cancel(1, false));
        written(&mut store, &[settle(mail, None)]);
        seen.push(mail);
        drop(store);
        store = site.open();
    }
    assert!(seen.is_sorted_by(|before, after| before < after), "{seen:?}");
}

pub fn mail_of_one_execution_is_listed_oldest_first<P: StoreSite>(site: &P) {
    let mut store = site.open();
    let all = [1, 2, 1, 1, 2].map(|to| accepted(&mut store, cancel(to, false)));
    written(&mut store, &[settle(all[2], None)]);
    let own = |to, limit| -> Vec<MailId> {
        let found = reader(&store).inbox_of(ExecutionId(to), limit).expect("mail");
        found.into_iter().map(|mail| mail.id).collect()
    };
    assert_eq!(own(1, 9), [all[0], all[3]]);
    assert_eq!(own(1, 1), [all[0]]);
    assert_eq!(own(2, 9), [all[1], all[4]]);
    assert!(own(3, 9).is_empty());
}
