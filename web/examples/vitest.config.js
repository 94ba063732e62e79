export default { test: { environment: 'jsdom', globals: true, include: ['shared/*.spec.js'] } };
