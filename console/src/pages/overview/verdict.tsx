/** The one question of the first page: is every paid customer served, and if not, what to do first. */
import { useState, type ReactNode } from 'react'
import { Link } from 'wouter'
import { Icon } from '../../components/icons.tsx'
import { Moment } from '../../components/moment.tsx'
import { groupedText } from '../../figures.ts'
import { linkOf } from '../../links.ts'
import { visibleText } from '../../visible-text.ts'
import type { Overview } from '../overview.tsx'

/** The answer, as large as it matters, with all that there is to do, the worst first. */
export function Verdict({ overview }: { overview: Overview }): ReactNode {
  const { served, verdict, todo, unserved } = overview
  const tone = served === 'no' ? 'bad' : todo.length === 0 ? 'good' : 'warn'
  return (
    <section className="verdict" data-tone={tone} aria-label="Is every paid customer served?">
      <div className="verdict-head">
        <span className="verdict-sign">
          <Icon name={served === 'yes' ? 'check' : 'alert'} />
        </span>
        <div>
          <p className="verdict-answer">{verdict}</p>
          {todo.length === 0 ? (
            <p className="muted">Nothing asks for a person.</p>
          ) : (
            <ol className="todo" aria-label="What to do, the worst first">
              {todo.map((each, index) => (
                <li key={`${each.code} ${each.id ?? ''}`}>
                  <span className="todo-when">{index === 0 ? 'First' : 'Then'}</span>
                  <Advice {...each} />
                </li>
              ))}
            </ol>
          )}
        </div>
      </div>
      {unserved.items.length > 0 && <Unserved of={unserved} />}
    </section>
  )
}

function Advice({ text, kind, id }: Overview['todo'][number]): ReactNode {
  const to = kind === null || id === null ? null : linkOf(kind, id)
  const shown = visibleText(text)
  return to === null ? (
    <span>{shown}</span>
  ) : (
    <Link to={to} className="row-link">
      <>
        {shown} <Icon name="right" />
      </>
    </Link>
  )
}

/** Shown before somebody asks for more. */
const few = 5

function Unserved({ of }: { of: Overview['unserved'] }): ReactNode {
  const [all, setAll] = useState(false)
  const shown = all ? of.items : of.items.slice(0, few)
  const more = of.count - of.items.length
  return (
    <ul className="unserved" aria-label="Not served">
      {shown.map(({ about, subject, why, since }) => (
        <li key={`${about.kind} ${about.id}`}>
          <Link to={linkOf(about.kind, about.id) ?? ''} className="row-link">
            <>
              {about.kind} <span className="id-text">{visibleText(about.id)}</span>
            </>
          </Link>
          {subject !== null && <span>{visibleText(subject)}</span>}
          <span className="muted">
            {visibleText(why)}, <Moment at={since} />
          </span>
        </li>
      ))}
      {!all && of.items.length > few && (
        <li>
          <button type="button" className="button plain small" onClick={() => setAll(true)}>
            {groupedText(of.count - few)} more
          </button>
        </li>
      )}
      {all && more > 0 && <li className="muted">and {groupedText(more)} more</li>}
    </ul>
  )
}
