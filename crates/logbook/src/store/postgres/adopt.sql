-- Runs whenever a store is opened: what must hold after a restore by PostgreSQL's own programs, or after a new name of the schema.
-- Numbers of transactions of another server mean nothing here, and a later transaction could get one of them.
UPDATE book SET rewrites = 0 WHERE rewrites > txid_current();
-- Functions of triggers name the schema that they were made in.
DO $$
DECLARE named regprocedure;
BEGIN
    FOR named IN SELECT oid FROM pg_proc WHERE pronamespace = current_schema()::regnamespace
        AND EXISTS (SELECT FROM unnest(proconfig) AS setting WHERE setting LIKE 'search_path=%')
        AND NOT 'search_path=' || quote_ident(current_schema()) = ANY (proconfig)
    LOOP
        EXECUTE format('ALTER FUNCTION %s SET search_path FROM CURRENT', named);
    END LOOP;
END $$;
