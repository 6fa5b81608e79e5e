/** The types of the hub's REST API, made from its OpenAPI document (`spec/book-api.json`) by `npm run types`. */
import type { components } from "../../types/hub";

export type Schemas = components["schemas"];

/** A type with other types of some members, where the document says less than the hub promises. */
export type Replace<Type, By> = Omit<Type, keyof By> & By;

/** Members that the hub always sends; one without a value is null. */
export type Sent<Type, Name extends keyof Type> = Omit<Type, Name> & Required<Pick<Type, Name>>;
