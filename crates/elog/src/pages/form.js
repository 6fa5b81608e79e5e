// The script of forms. Everything it does can be done without it, with more pages.
'use strict';
{
  const form = document.querySelector('form.entry');
  const text = form.querySelector('textarea[name="Text"]');
  const waiting = [...form.querySelectorAll('tr.newfile input[type="file"]')];
  const AFTER = 1500; // milliseconds between the last key and the draft
  let files = []; // new files, in order
  let changed = false; // since the form was sent or saved
  let busy = Promise.resolve(); // one request at a time
  let timer = 0;

  const make = (name, className, content = '') => {
    const element = document.createElement(name);
    element.className = className;
    element.textContent = content;
    return element;
  };
  const note = make('div', 'note live');
  note.setAttribute('role', 'status');
  const warning = make('div', 'warning live');
  warning.setAttribute('role', 'alert');
  form.before(warning);
  form.querySelector('.buttons').append(note);

  const field = (name) => form.querySelector(`input[type="hidden"][name="${name}"]`);
  const setField = (name, value) => {
    let element = field(name);
    if (!element) {
      element = document.createElement('input');
      element.type = 'hidden';
      element.name = name;
      form.append(element);
    }
    element.value = value;
  };

  // What the form sends with a command; files only when it is submitted.
  const content = (command, withFiles) => {
    const data = new FormData(form);
    if (!withFiles) for (const input of waiting) data.delete(input.name);
    data.delete('cmd');
    data.append('cmd', command);
    data.append('scripted', '1');
    return data;
  };
  const target = new URL(form.getAttribute('action'), document.baseURI);
  const post = (command) => fetch(target, { method: 'POST', body: content(command, false) });
  const read = (page) => new DOMParser().parseFromString(page, 'text/html');
  const errorOf = (page) => read(page).querySelector('.errormsg')?.textContent.trim();

  // A session that has ended and begun again has another token; a fresh page of the same form has it.
  const renew = async () => {
    const page = read(await (await fetch(location.href)).text());
    const fresh = page.querySelector('form.entry input[name="tampu_form"]');
    if (!fresh || fresh.value === field('tampu_form').value) return false;
    setField('tampu_form', fresh.value);
    return true;
  };

  // Drafts.
  const save = async () => {
    if (!form.hasAttribute('data-saves') || !changed) return;
    changed = false;
    try {
      let response = await post('Save');
      if (response.status === 403 && (await renew())) response = await post('Save');
      const said = await response.text();
      const number = /^OK (\d+)\n(.+)$/.exec(said.trim());
      if (!number) throw new Error(errorOf(said) || 'you are not logged in; log in in another window, and go on here');
      setField('draft_id', number[1]);
      note.textContent = `${number[2]}${files.length ? ', without the new files' : ''}`;
      note.classList.remove('failed');
    } catch (error) {
      changed = true;
      note.textContent = `The draft is not saved: ${error.message}`;
      note.classList.add('failed');
    }
  };
  const later = () => {
    changed = true;
    clearTimeout(timer);
    timer = setTimeout(() => { busy = busy.then(save); }, AFTER);
  };
  form.addEventListener('input', later);

  // Tags: the known ones are offered after each comma.
  form.addEventListener('input', (event) => {
    const input = event.target;
    if (!input.matches('[data-tags]')) return;
    const before = input.value.slice(0, input.value.lastIndexOf(',') + 1);
    for (const option of input.list.options) {
      option.dataset.tag ??= option.value;
      option.value = before ? `${before} ${option.dataset.tag}` : option.dataset.tag;
    }
  });
  addEventListener('beforeunload', (event) => { if (changed || files.length) event.preventDefault(); });

  // A date is chosen in one field of the browser, which fills in the separate fields that the form sends.
  const dates = () => {
    for (const parts of form.querySelectorAll('.moment:not([hidden])')) {
      const fields = [...parts.querySelectorAll('input')]; // year, month, day, and with a clock hour, minute, second
      const [year, month, day, ...clock] = fields.map((one) => one.value.trim());
      const two = (number) => (number || '0').padStart(2, '0');
      const chosen = document.createElement('input');
      chosen.type = clock.length ? 'datetime-local' : 'date';
      chosen.max = clock.length ? '9999-12-31T23:59:59' : '9999-12-31';
      if (clock.length) chosen.step = '1';
      chosen.setAttribute('aria-labelledby', parts.closest('[aria-labelledby]').getAttribute('aria-labelledby'));
      if (year || month || day) {
        const date = `${year.length < 3 ? `20${two(year)}` : year.padStart(4, '0')}-${two(month)}-${two(day)}`;
        chosen.value = clock.length ? `${date}T${clock.map(two).join(':')}` : date;
        if (!chosen.value) continue; // what is no date stays as it was typed
      }
      chosen.addEventListener('input', () => {
        const numbers = chosen.value.split(/[-T:]/);
        fields.forEach((one, nth) => { one.value = chosen.value ? numbers[nth] ?? '0' : ''; });
      });
      parts.before(chosen);
      parts.hidden = true;
    }
  };
  dates();

  // Choices that decide about other fields: the server knows which, and the page takes them over.
  const update = async () => {
    const before = new FormData(form);
    const page = read(await (await post('Update')).text());
    const rows = page.getElementById('attributes');
    if (!rows) return;
    const at = document.activeElement;
    const [name, value] = form.contains(at) ? [at.name, at.value] : [];
    // What was typed while the server answered stays.
    for (const typed of form.querySelectorAll('#attributes input[type="text"]')) {
      const other = rows.querySelector(`input[type="text"][name="${typed.name}"]`);
      if (other && typed.value !== before.get(typed.name)) other.value = typed.value;
    }
    document.getElementById('attributes').replaceWith(rows);
    document.getElementById('unshown').replaceWith(page.getElementById('unshown'));
    dates();
    const same = [...rows.querySelectorAll('input, select, textarea')].filter((one) => one.name === name);
    (same.find((one) => one.value === value) || same[0])?.focus();
  };
  const failed = (error) => { warning.textContent = `The server did not answer: ${error.message}`; };
  form.addEventListener('change', (event) => {
    if (event.target.closest('[data-decides]')) busy = busy.then(update).catch(failed);
  });
  document.getElementById('update')?.setAttribute('hidden', '');

  // The preview: pictures that are not sent yet are shown from this page.
  const preview = async () => {
    const page = read(await (await post('Preview')).text());
    const shown = page.getElementById('preview');
    if (!shown) { warning.textContent = page.querySelector('.errormsg')?.textContent ?? 'There is no preview'; return; }
    for (const image of shown.querySelectorAll('img')) {
      const name = /^attachment:([^?#]+)$/.exec(image.getAttribute('src') ?? '');
      const file = name && files.find((one) => one.name === decodeURIComponent(name[1]));
      if (file) image.src = URL.createObjectURL(file);
    }
    document.getElementById('preview').replaceWith(shown);
    shown.scrollIntoView({ block: 'nearest' });
  };

  // Files: one list, whatever way they came.
  const list = make('ul', 'newfiles');
  const carrier = waiting[0];
  const most = Number(form.dataset.most ?? Infinity);
  const size = (bytes) => (bytes < 1024 ? `${bytes} Bytes` : bytes < 1048576 ? `${Math.round(bytes / 1024)} kB` : `${(bytes / 1048576).toFixed(1)} MB`);
  const reference = (file) => {
    const address = `attachment:${encodeURIComponent(file.name).replace(/[()'!*]/g, (c) => `%${c.charCodeAt(0).toString(16)}`)}`;
    const encoding = form.querySelector('input[name="encoding"]:checked')?.value;
    const name = file.name.replace(/[[\]<>"&]/g, '_');
    if (encoding === 'Markdown') return `![${name}](${address})`;
    if (encoding === 'HTML') return `<img src="${address}" alt="${name}">`;
    if (encoding === 'ELCode') return `[img]${address}[/img]`;
    return `(see ${file.name})`;
  };
  const insert = (file) => {
    if (!text) return;
    text.setRangeText(reference(file), text.selectionStart, text.selectionEnd, 'end');
    text.focus();
    later();
  };
  const show = () => {
    const all = new DataTransfer();
    files.forEach((file) => all.items.add(file));
    carrier.files = all.files;
    list.replaceChildren(...files.map((file, nth) => {
      const line = make('li', '', `${file.name} (${size(file.size)}) `);
      const button = (label, act) => {
        const made = make('button', '', label);
        made.type = 'button';
        made.setAttribute('aria-label', `${label} ${file.name}`);
        made.addEventListener('click', act);
        line.append(made, ' ');
      };
      if (file.type.startsWith('image/') && text) button('Insert into text', () => insert(file));
      button('Remove', () => { files.splice(nth, 1); show(); });
      return line;
    }));
  };
  const add = (more, into) => {
    warning.textContent = '';
    for (let file of more) {
      if (file.size > most) { warning.textContent = `${file.name} has ${size(file.size)}; this logbook takes ${size(most)}`; continue; }
      let name = file.name;
      // Browsers give every pasted picture the same name.
      if (into && /^image\.\w+$/.test(name)) {
        const now = new Date(Date.now() - new Date().getTimezoneOffset() * 60000).toISOString();
        name = `pasted-${now.slice(0, 19).replace(/[^\d]/g, '')}${name.slice(name.lastIndexOf('.'))}`;
      }
      for (let nth = 2; files.some((one) => one.name === name); nth += 1) name = name.replace(/(-\d+)?(\.[^.]*)?$/, `-${nth}$2`);
      if (name !== file.name) file = new File([file], name, { type: file.type });
      files.push(file);
      if (into && file.type.startsWith('image/')) insert(file);
    }
    show();
  };
  if (carrier) {
    waiting.slice(1).forEach((input) => input.closest('tr').remove());
    carrier.closest('tr').querySelector('th').textContent = 'New files:';
    carrier.after(make('span', 'comment', ' or drop files here, or paste a picture into the text'), list);
    carrier.addEventListener('change', () => { add([...carrier.files], false); later(); });
    document.addEventListener('paste', (event) => {
      const pasted = [...event.clipboardData.files];
      // A cell of a table comes as text and as a picture: the text is meant.
      if (!pasted.length || event.clipboardData.getData('text/plain')) return;
      event.preventDefault();
      add(pasted, true);
    });
    const holdsFiles = (event) => event.dataTransfer?.types.includes('Files');
    for (const name of ['dragenter', 'dragover']) document.addEventListener(name, (event) => {
      if (!holdsFiles(event)) return;
      event.preventDefault();
      form.classList.add('drop');
    });
    document.addEventListener('dragleave', (event) => { if (!event.relatedTarget) form.classList.remove('drop'); });
    document.addEventListener('drop', (event) => {
      if (!holdsFiles(event)) return;
      event.preventDefault();
      form.classList.remove('drop');
      add([...event.dataTransfer.files], event.target === text);
    });
  }

  // Sending, with the progress of the files. An error leaves the form as it is, with its files.
  const bar = make('progress', 'sending');
  const send = () => new Promise((resolve, reject) => {
    const request = new XMLHttpRequest();
    request.open('POST', target);
    request.upload.addEventListener('progress', (event) => {
      if (!event.lengthComputable) return;
      bar.max = event.total;
      bar.value = event.loaded;
    });
    request.addEventListener('load', () => resolve({ status: request.status, said: request.responseText }));
    request.addEventListener('error', () => reject(new Error('the connection broke; look at the list before you send it again')));
    request.send(content('Submit', true));
  });
  const submit = async () => {
    clearTimeout(timer);
    warning.textContent = '';
    note.textContent = 'Sending...';
    if (files.length) note.before(bar);
    const buttons = [...form.querySelectorAll('.buttons button')];
    buttons.forEach((button) => { button.disabled = true; });
    try {
      let { status, said } = await send();
      if (status === 403 && (await renew())) ({ status, said } = await send());
      const place = /^OK ?(\S*)$/.exec(said.trim());
      if (place) {
        changed = false;
        files = [];
        location.assign(new URL(`./${place[1]}`, target));
        return;
      }
      throw new Error(errorOf(said) || `Error: the server answered with status ${status}`);
    } catch (error) {
      warning.textContent = error.message;
      note.textContent = '';
      warning.scrollIntoView({ block: 'nearest' });
      changed = true;
    }
    bar.remove();
    buttons.forEach((button) => { button.disabled = false; });
  };
  form.addEventListener('submit', (event) => {
    const command = event.submitter?.value ?? 'Submit';
    if (command === 'Back') { changed = false; files = []; return; }
    event.preventDefault();
    if (command === 'Submit') busy = busy.then(submit);
    if (command === 'Save') { changed = true; busy = busy.then(save); }
    if (command === 'Update') busy = busy.then(update).catch(failed);
    if (command === 'Preview') busy = busy.then(preview).catch(failed);
  });

  // Others who edit the same entry.
  if (form.dataset.watch) {
    const others = make('div', 'warning live');
    others.setAttribute('role', 'status');
    form.before(others);
    // A tab keeps its key when its page is loaded again, so that its own earlier form counts as the same.
    const key = (() => {
      const fresh = [...crypto.getRandomValues(new Uint8Array(8))].map((byte) => byte.toString(16).padStart(2, '0')).join('');
      try {
        const kept = sessionStorage.getItem('tampu_tab') ?? fresh;
        sessionStorage.setItem('tampu_tab', kept);
        return kept;
      } catch {
        return fresh;
      }
    })();
    const look = async () => {
      if (document.hidden) return;
      const body = new FormData();
      for (const name of ['tampu_form', 'edit_id']) body.append(name, field(name).value);
      body.append('form_key', key);
      body.append('cmd', 'Editing');
      const response = await fetch(target, { method: 'POST', body }).catch(() => null);
      if (!response?.ok || !response.headers.get('content-type').startsWith('text/plain')) return;
      const [revision, ...names] = (await response.text()).split('\n');
      const told = [];
      if (names.length) told.push(`${names.join(', ')} edits this entry, too.`);
      if (revision !== field('entry_revision')?.value) told.push('This entry was changed while this form was open: open it in another window before you send.');
      others.textContent = told.join(' ');
    };
    look();
    setInterval(look, 1000 * Number(form.dataset.watch));
    document.addEventListener('visibilitychange', look);
  }
}
