console.log('the worker speaks');
const asked = [fetch('of-worker'), fetch('http://worker.example/').catch(() => {})];
Promise.all(asked).then(() => postMessage('done'));
