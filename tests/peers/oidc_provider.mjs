// A provider of identities for login_oidc.py: the package oidc-provider, certified by the OpenID Foundation, with its own pages to log in.
// Arguments: the directory with node_modules, the port, the address of return.
import { createRequire } from 'node:module';
import { pathToFileURL } from 'node:url';

const [directory, port, back] = process.argv.slice(2);
const found = createRequire(`${directory}/`).resolve('oidc-provider');
const { default: Provider } = await import(pathToFileURL(found));
const people = {
  'id-of-zoe': { sub: 'id-of-zoe', preferred_username: 'Zoe', name: 'Zoë Müller', email: 'zoe@lab.example', email_verified: true, groups: ['operators'] },
  'id-of-max': { sub: 'id-of-max', preferred_username: 'max', name: 'Max Quartz', email: 'admin@lab.example', email_verified: false, groups: [] },
  'id-of-local': { sub: 'id-of-local', preferred_username: 'local', name: 'Another Person' },
};
const provider = new Provider(`http://127.0.0.1:${port}`, {
  clients: [{ client_id: 'tampu', client_secret: 'between the provider and the hub', redirect_uris: [back], post_logout_redirect_uris: [back.replace(/back$/, 'gone')] }],
  claims: { openid: ['sub'], profile: ['name', 'preferred_username'], email: ['email', 'email_verified'], groups: ['groups'] },
  scopes: ['openid', 'profile', 'email', 'groups'],
  pkce: { required: () => true },
  cookies: { keys: ['of this test'] },
  async findAccount(_, id) {
    return people[id] && { accountId: id, claims: async () => people[id] };
  },
});
provider.listen(Number(port), '127.0.0.1', () => console.log('listening'));
