-- What the console's charts count by time. These tables grow in the order of these columns, which never change:
-- a block range index costs an insert next to nothing.
create index inbox_events_received_idx on /* schema */inbox_events using brin (received_at)
  with (pages_per_range = 16, autosummarize = on);
create index deliveries_received_idx on /* schema */deliveries using brin (received_at)
  with (pages_per_range = 16, autosummarize = on);
create index outbox_answers_answered_idx on /* schema */outbox_answers using brin (answered_at)
  with (pages_per_range = 16, autosummarize = on);
