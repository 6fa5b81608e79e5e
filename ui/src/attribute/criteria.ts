/** The form of criteria: texts of fields, and the change that `event/conf` takes (`spec/events.md`). */
import type { Config, Criteria } from "./directory";

export interface CriteriaFields {
  changeAbs: string;
  changeRel: string;
  archiveAbs: string;
  archiveRel: string;
  archiveMs: string;
  periodMs: string;
  pollMs: string;
}

export interface Change {
  criteria: Criteria;
  polled_ms?: number;
}

export function fieldsOf({ criteria, polled_ms }: Config): CriteriaFields {
  const { change, archive, archive_period_ms, period_ms } = criteria;
  return {
    changeAbs: change.abs ?? "", changeRel: change.rel ?? "", archiveAbs: archive.abs ?? "", archiveRel: archive.rel ?? "",
    archiveMs: archive_period_ms === null ? "" : `${archive_period_ms}`, periodMs: `${period_ms}`, pollMs: polled_ms === null ? "" : `${polled_ms}`,
  };
}

const NUMBER = /^[-+]?(?:\d+\.?\d*|\.\d+)(?:e[-+]?\d+)?$/i;

/** Reads the fields: the change, or the words of a mistake. */
export function changeOf(fields: CriteriaFields): Change | string {
  const threshold = (text: string): string | null | undefined => {
    const given = text.replaceAll(/\s/g, "");
    if (given === "") {
      return null;
    }
    const parts = given.split(",");
    return parts.length <= 2 && parts.every((part) => NUMBER.test(part)) ? given : undefined;
  };
  for (const text of [fields.changeAbs, fields.changeRel, fields.archiveAbs, fields.archiveRel]) {
    if (threshold(text) === undefined) {
      return `'${text}' is no threshold: write a number, or a negative and a positive one, as -1,2`;
    }
  }
  for (const text of [fields.archiveMs, fields.periodMs, fields.pollMs]) {
    if (!/^\d{0,9}$/.test(text.trim())) {
      return `'${text}' is not a number of milliseconds`;
    }
  }
  if (Number(fields.periodMs) === 0) {
    return "The period needs a number of milliseconds above 0.";
  }
  const ms = (text: string) => (text.trim() === "" ? null : Number(text));
  const of = (abs: string, rel: string) => ({ abs: threshold(abs) ?? null, rel: threshold(rel) ?? null });
  const polled = ms(fields.pollMs);
  return {
    criteria: {
      change: of(fields.changeAbs, fields.changeRel), archive: of(fields.archiveAbs, fields.archiveRel), archive_period_ms: ms(fields.archiveMs), period_ms: Number(fields.periodMs),
    },
    ...(polled === null ? {} : { polled_ms: polled }),
  };
}
