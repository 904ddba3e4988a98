// A picture of the playground for the documents: `PLAYGROUND=FOLDER node screenshot.mjs FILE.webp`.

import { writeFileSync } from 'node:fs';
import { open, serve } from './browser.mjs';

const server = await serve(process.env.PLAYGROUND);
const browser = await open({ viewport: { width: 1180, height: 900 }, colorScheme: 'light' });
const page = await browser.context.newPage();
await page.goto(`${server.address}#path=rate=50Mbit+rtt=100ms+queue=2bdp&startups=standard,hystart,search&size=10MB`);
await page.waitForSelector('#app[data-ready]', { timeout: 60_000 });
await page.waitForFunction(() => Number(document.querySelector('.version').dataset.drawn) >= 1, null, { timeout: 60_000 });
await page.waitForTimeout(1000);
const session = await browser.context.newCDPSession(page);
const { data } = await session.send('Page.captureScreenshot', { format: 'webp', quality: 60 });
writeFileSync(process.argv[2], Buffer.from(data, 'base64'));
await browser.close();
server.close();
