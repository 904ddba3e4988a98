// Tables that can be sorted and filtered.

/** The number that a cell begins with; without one it comes last. */
function value(cell) {
  const first = (cell.childNodes[0]?.textContent ?? '').trim() === '= ' ? '' : cell.innerText ?? cell.textContent;
  const found = first.replaceAll(',', '').match(/-?\d+(\.\d+)?(e[+-]?\d+)?/i);
  return found && !/^-$/.test(first.trim()) ? Number(found[0]) : Infinity;
}

/** Adds a button to each heading, and above a table of many lines a field that selects lines by their text. */
export function enhanceTable(table) {
  const heads = [...(table.tHead?.rows[0]?.cells ?? [])];
  const body = table.tBodies[0];
  if (!heads.length || !body || body.rows.length < 2 || table.dataset.enhanced || table.dataset.plain !== undefined) return;
  table.dataset.enhanced = 'yes';
  const original = [...body.rows];
  const isText = (column) => original.every((r) => r.cells[column] && value(r.cells[column]) === Infinity);
  heads.forEach((head, column) => {
    const button = document.createElement('button');
    button.type = 'button';
    button.className = 'sort';
    button.title = 'Sort by this column; again for the other order; a third time for the first order';
    button.append(...head.childNodes);
    head.replaceChildren(button);
    button.addEventListener('click', () => {
      const before = head.getAttribute('aria-sort');
      const next = before === 'ascending' ? 'descending' : before === 'descending' ? null : 'ascending';
      heads.forEach((h) => h.removeAttribute('aria-sort'));
      if (next) head.setAttribute('aria-sort', next);
      const asText = column === 0 || isText(column);
      const compare = (a, b) => {
        if (asText) return a.cells[column].textContent.localeCompare(b.cells[column].textContent, 'en');
        const [x, y] = [value(a.cells[column]), value(b.cells[column])];
        return x === y ? 0 : x < y ? -1 : 1;
      };
      const rows = [...original];
      if (next) rows.sort((a, b) => (next === 'ascending' ? compare(a, b) : compare(b, a)));
      body.append(...rows);
    });
  });
  if (original.length < 8) return;
  const field = document.createElement('input');
  field.type = 'search';
  field.className = 'filter';
  field.placeholder = 'Show lines with…';
  field.setAttribute('aria-label', 'Show only lines with this text');
  field.addEventListener('input', () => {
    const wanted = field.value.trim().toLowerCase();
    for (const row of original) row.hidden = !row.textContent.toLowerCase().includes(wanted);
  });
  (table.closest('.scroll') ?? table).before(field);
}
