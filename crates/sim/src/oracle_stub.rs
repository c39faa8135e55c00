use crate::scenario::Scenario;
use crate::seen::Seen;
pub struct Oracle;
pub struct Violation { pub rule: &'static str, pub what: String }
impl Oracle { pub fn new(_: &Scenario) -> Oracle { Oracle } pub fn see(&mut self, _: &Seen) -> Result<(), Violation> { Ok(()) } }
